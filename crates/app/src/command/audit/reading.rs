//! `orgvault audit list`.

use super::super::integration::short_id;
use super::super::target::Target;
use crate::cli::AuditFilterArgs;
use rustix::termios::tcgetwinsize;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use vault_cli::failure::{Failure, NO_ACCOUNT, NO_INTEGRATION, NO_ORGANIZATION};
use vault_cli::output::{Output, table};
use vault_cli::text::{counted, rfc3339};
use vault_client::{AuditFilter, AuditItem, AuditedChange, Session};
use vault_core::audit::Subject;
use vault_core::email::EmailAddress;
use vault_core::id::IntegrationId;
use vault_core::integration::IntegrationName;

/// Page size of lists.
const PAGE: usize = 1_000;
/// Default number of entries in a table.
const LISTED: usize = 50;
/// Maximum number of accounts of a database to load in order to show their addresses.
const MAX_ADDRESSES: usize = 10_000;
/// Interval of an export's progress messages.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// The entries to read.
struct Question {
    session: Session,
    /// Name of the organization. `None` reads all that the caller may read.
    org: Option<String>,
    filter: AuditFilter,
}

pub(super) fn list(
    target: &Target<'_>,
    args: AuditFilterArgs,
    limit: Option<usize>,
    output: Output,
) -> Result<(), Failure> {
    let question = question(target, args)?;
    let mut entries = Vec::new();
    read(target, &question, false, Some(limit.unwrap_or(LISTED)), |entry| {
        entries.push(entry);
        Ok(())
    })?;
    if output.is_json() {
        return output.print(&entries, "");
    }
    let names = Names::of(target, question.org.as_deref())?;
    let rows: Vec<Vec<String>> = entries.iter().map(|entry| row(entry, &names)).collect();
    let text = table(&["TIME", "ACTION", "ACTOR", "SUBJECT", "DETAILS"], &rows);
    let width = io::stdout().is_terminal().then(|| tcgetwinsize(io::stdout()).ok()).flatten().map(|size| size.ws_col);
    output.print(&(), &fitted(&text, width.map(usize::from).filter(|width| *width > 0)))
}

/// Truncates lines to the width of the terminal.
fn fitted(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let cut = |line: &str| match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    };
    text.lines().map(|line| cut(line) + "\n").collect()
}

/// Exports entries as JSON Lines.
pub(super) fn export(
    target: &Target<'_>,
    args: AuditFilterArgs,
    limit: Option<usize>,
    file: &Path,
) -> Result<(), Failure> {
    let question = question(target, args)?;
    let is_file = file != Path::new("-");
    let writer: Box<dyn Write + Send> = match is_file {
        true => {
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
            Box::new(opened.map_err(|error| Failure::new(format!("cannot create {}: {error}", file.display())))?)
        }
        false => Box::new(io::stdout()),
    };
    let mut writer = BufWriter::new(writer);
    let (mut written, mut reported) = (0_u64, Instant::now());
    let exported = read(target, &question, true, limit, |entry| {
        serde_json::to_writer(&mut writer, &entry).map_err(io::Error::from)?;
        writer.write_all(b"\n")?;
        written += 1;
        if reported.elapsed() >= TELL_EVERY {
            reported = Instant::now();
            tracing::info!("{written} entries written");
        }
        Ok(())
    });
    let finished = exported.and_then(|()| Ok(writer.flush()?));
    match finished {
        // The reader closed the pipe, for example `head`.
        Err(ReadError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        Err(ReadError::Write(error)) => return Err(Failure::new(format!("cannot write the export: {error}"))),
        Err(ReadError::Source(failure)) => return Err(failure),
        Ok(()) => {}
    }
    if is_file {
        writer.into_inner().map_err(|error| Failure::new(error.to_string()))?;
        std::fs::File::open(file)?.sync_all()?;
    }
    let _ = writeln!(io::stderr(), "Exported {}.", counted(written, "entry")); // standard error may be closed
    Ok(())
}

/// The reason why reading stopped.
enum ReadError {
    /// The entries could not be read.
    Source(Failure),
    Write(io::Error),
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Source(failure)
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Source(failure) => failure,
            ReadError::Write(error) => error.into(),
        }
    }
}

/// Reads the entries that match `question`, page by page, up to `limit` entries.
fn read(
    target: &Target<'_>,
    question: &Question,
    oldest_first: bool,
    limit: Option<usize>,
    mut take: impl FnMut(AuditItem) -> Result<(), io::Error>,
) -> Result<(), ReadError> {
    target.seal_audit()?;
    let (mut left, mut cursor) = (limit.unwrap_or(usize::MAX), None);
    while left > 0 {
        let page_size = u32::try_from(left.min(PAGE)).ok();
        let order = oldest_first.then(|| "oldest".to_owned());
        let filter = AuditFilter { order, page_size, ..question.filter.clone() };
        let (entries, next) = target.done(question.session.audit(&filter, cursor.as_deref()), NO_ORGANIZATION)?;
        left -= entries.len();
        for entry in entries {
            let organization = entry.organization.or_else(|| target.organization_id().map(str::to_owned));
            take(AuditItem { organization, ..entry })?;
        }
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(())
}

/// Converts the flags to a query.
fn question(target: &Target<'_>, args: AuditFilterArgs) -> Result<Question, Failure> {
    let org = args.org.as_deref();
    let session = match org {
        Some(_) => target.place(org)?.session,
        None => target.session(None),
    };
    let now = target.now();
    let filter = AuditFilter {
        since: args.since.map(|moment| rfc3339(moment.before(now))),
        until: args.until.map(|moment| rfc3339(moment.before(now))),
        actions: args.action,
        outcome: args.denied.then(|| "denied".to_owned()),
        reads: args.no_reads.then_some(false),
        subject: object_id(target, org, args.subject)?,
        actor: object_id(target, org, args.actor)?,
        namespace: args.namespace,
        ..AuditFilter::default()
    };
    Ok(Question { session, org: args.org, filter })
}

/// Converts the e-mail address of an account, or the name or short ID of an integration, to an ID. Other text stays
/// unchanged.
fn object_id(target: &Target<'_>, org: Option<&str>, text: Option<String>) -> Result<Option<String>, Failure> {
    const KINDS: [&str; 4] = ["account", "integration", "operator", "system"];
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let is_subject = [Subject::Instance, Subject::Vault, Subject::Namespace, Subject::UnknownAddresses, Subject::Audit]
        .iter()
        .any(|subject| subject.text() == text);
    if text.contains(':') || KINDS.contains(&&*text) || is_subject || text.parse::<IntegrationId>().is_ok() {
        return Ok(Some(text));
    }
    let names = Names::of(target, org)?;
    if text.contains('@') {
        let email =
            EmailAddress::parse(&text).map_err(|_| Failure::usage(format!("{text} is not an e-mail address")))?;
        let found = names.accounts.into_iter().find(|(_, address)| *address == email.as_str()).map(|(id, _)| id);
        let absent = || format!("no account has the address {text}. For a deleted account, pass its ID");
        return found.map(Some).ok_or_else(|| Failure::new(absent()));
    }
    let key = |name: &str| IntegrationName::parse(name, "").ok().map(|name| name.uniqueness_key());
    let wanted = key(&text);
    let is_meant = |id: &str, name: &str| short_id(id) == text || (wanted.is_some() && key(name) == wanted);
    let mut found = names.integrations.into_iter().filter(|(id, name)| is_meant(id, name)).map(|(id, _)| id);
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(Failure::new(format!("several integrations match {text}. Pass an ID, or --org"))),
        (Some(id), None) => Ok(Some(id)),
        (None, _) => Err(Failure::new(format!(
            "no integration has the name or short ID {text}. For a deleted integration or another object, pass its ID"
        ))),
    }
}

/// Addresses of accounts and names of integrations, by ID.
struct Names {
    accounts: HashMap<String, String>,
    integrations: HashMap<String, String>,
}

impl Names {
    fn of(target: &Target<'_>, org: Option<&str>) -> Result<Self, Failure> {
        let mut names = Self { accounts: HashMap::new(), integrations: HashMap::new() };
        for place in target.places(org)? {
            let integrations = target.done(place.session.integrations(), NO_INTEGRATION)?.into_iter();
            names.integrations.extend(integrations.map(|integration| (integration.id, integration.name)));
            if names.accounts.len() < MAX_ADDRESSES {
                let accounts = target.done(place.session.accounts(), NO_ACCOUNT)?.into_iter();
                names.accounts.extend(accounts.map(|account| (account.id, account.email)));
            }
        }
        Ok(names)
    }

    /// Replaces the ID in a text such as `account:<id>` by the account's address, or by the integration's name and short
    /// ID.
    fn shown(&self, text: &str) -> String {
        let id = text.rsplit_once(':').map_or(text, |(_, id)| id);
        let integration = || self.integrations.get(id).map(|name| format!("{name} ({})", short_id(id)));
        self.accounts.get(id).cloned().or_else(integration).unwrap_or_else(|| text.to_owned())
    }
}

/// Summarizes the changes of an entry.
fn changed(entry: &AuditItem) -> Option<String> {
    let word = |change: AuditedChange| match (change.from, change.to) {
        (None, None) => change.field,
        (from, to) => {
            let [from, to] = [from, to].map(|value| value.unwrap_or_else(|| "none".to_owned()));
            format!("{} {from} → {to}", change.field)
        }
    };
    let words: Vec<String> = entry.changes.iter().cloned().map(word).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn row(entry: &AuditItem, names: &Names) -> Vec<String> {
    let actor = match (&entry.account, &entry.integration) {
        (Some(account), _) => names.shown(account),
        (None, Some(integration)) => names.shown(&format!("integration:{integration}")),
        (None, None) => entry.actor.clone(),
    };
    let credentials = &entry.credentials;
    let details = [
        entry.namespace.clone(),
        changed(entry),
        (entry.count > 1).then(|| format!("{} times", entry.count)),
        entry.network.clone().map(|network| format!("from {network}")),
        (!credentials.is_empty()).then(|| counted(u64::try_from(credentials.len()).unwrap_or_default(), "credential")),
        entry.purpose.clone().map(|purpose| format!("\"{purpose}\"")),
    ];
    let details: Vec<String> = details.into_iter().flatten().collect();
    vec![entry.at.clone(), entry.action.clone(), actor, names.shown(&entry.subject), details.join(", ")]
}
