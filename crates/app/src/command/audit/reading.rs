//! `orgvault audit list` and `audit export`.

use super::super::organization::organization_id;
use crate::audit::AuditLine;
use crate::cli::AuditFilterArgs;
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::text::{counted, rfc3339};
use rustix::termios::tcgetwinsize;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use vault_core::audit::{AuditChange, AuditEntry};
use vault_core::cursor::PageRequest;
use vault_core::email::EmailAddress;
use vault_core::port::AuditOrder;
use vault_core::principal::{Principal, Scope};
use vault_core::usecase::AuditFilter;
use vault_embed::OpenVault;

/// Page size of lists.
const PAGE: usize = 1_000;
/// Maximum time for sealing new entries before they are read, in milliseconds.
const SEAL_MILLIS: i64 = 10_000;
/// Maximum number of accounts to load in order to show their addresses.
const MAX_ADDRESSES: usize = 10_000;
/// Interval of an export's progress messages.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// The entries to read.
struct Question {
    scope: Scope,
    filter: AuditFilter,
}

pub(super) async fn list(
    vault: &OpenVault,
    args: AuditFilterArgs,
    limit: usize,
    output: Output,
) -> Result<(), Failure> {
    let question = question(vault, args).await?;
    let mut entries = Vec::new();
    read(vault, &question, AuditOrder::NewestFirst, Some(limit), |entry| {
        entries.push(entry);
        Ok(())
    })
    .await?;
    if output.is_json() {
        let shown: Vec<AuditLine> = entries.into_iter().map(AuditLine::from).collect();
        return output.print(&shown, "");
    }
    let names = Names::of(vault, question.scope).await?;
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
pub(super) async fn export(
    vault: &OpenVault,
    args: AuditFilterArgs,
    limit: Option<usize>,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let question = question(vault, args).await?;
    let target: Box<dyn Write + Send> = match file {
        Some(path) => {
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            Box::new(opened.map_err(|error| Failure::new(format!("cannot create {}: {error}", path.display())))?)
        }
        None => Box::new(io::stdout()),
    };
    let mut target = BufWriter::new(target);
    let (mut written, mut told) = (0_u64, Instant::now());
    let exported = read(vault, &question, AuditOrder::OldestFirst, limit, |entry| {
        serde_json::to_writer(&mut target, &AuditLine::from(entry)).map_err(io::Error::from)?;
        target.write_all(b"\n")?;
        written += 1;
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            tracing::info!("{written} entries written");
        }
        Ok(())
    })
    .await;
    let finished = exported.and_then(|()| Ok(target.flush()?));
    match finished {
        // The reader closed the pipe, for example `head`.
        Err(ReadError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        Err(ReadError::Write(error)) => return Err(Failure::new(format!("cannot write the export: {error}"))),
        Err(ReadError::Vault(error)) => return Err((*error).into()),
        Ok(()) => {}
    }
    if let Some(path) = file {
        target.into_inner().map_err(|error| Failure::new(error.to_string()))?;
        std::fs::File::open(path)?.sync_all()?;
    }
    let _ = writeln!(io::stderr(), "Exported {}.", counted(written, "entry")); // standard error may be closed
    Ok(())
}

/// The reason why reading stopped.
enum ReadError {
    Vault(Box<vault_core::Error>),
    Write(io::Error),
}

impl From<vault_core::Error> for ReadError {
    fn from(error: vault_core::Error) -> Self {
        Self::Vault(Box::new(error))
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
            ReadError::Vault(error) => (*error).into(),
            ReadError::Write(error) => error.into(),
        }
    }
}

/// Reads the entries that match `question`, page by page, up to `limit` entries.
async fn read(
    vault: &OpenVault,
    question: &Question,
    order: AuditOrder,
    limit: Option<usize>,
    mut take: impl FnMut(AuditEntry) -> Result<(), io::Error>,
) -> Result<(), ReadError> {
    // Lists of an organization contain only sealed entries. A server seals them within a second, but none may be
    // running.
    vault.operator().seal_audit(SEAL_MILLIS).await?;
    let reader = vault.audit_reader();
    let (mut left, mut cursor) = (limit.unwrap_or(usize::MAX), None);
    while left > 0 {
        let page = PageRequest { limit: left.min(PAGE), cursor };
        let page = reader.list(&Principal::Operator, question.scope, order, &question.filter, &page).await?;
        left -= page.items.len();
        for entry in page.items {
            take(entry)?;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(())
}

/// Converts the flags to a query.
async fn question(vault: &OpenVault, args: AuditFilterArgs) -> Result<Question, Failure> {
    let scope = match &args.org {
        Some(name) => Scope::One(organization_id(vault, name).await?),
        None => Scope::All,
    };
    let now = vault.ports().environment.now();
    let filter = AuditFilter {
        since: args.since.map(|moment| moment.before(now)),
        until: args.until.map(|moment| moment.before(now)),
        actions: args.action,
        denied: args.denied,
        without_reads: args.no_reads,
        subject: account_id(vault, args.subject).await?,
        actor: account_id(vault, args.actor).await?,
        namespace: args.namespace,
    };
    Ok(Question { scope, filter })
}

/// Converts an e-mail address to the account's ID. Other text stays unchanged.
async fn account_id(vault: &OpenVault, text: Option<String>) -> Result<Option<String>, Failure> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    if !text.contains('@') {
        return Ok(Some(text));
    }
    let names = Names::of(vault, Scope::All).await?;
    let email = EmailAddress::parse(&text).map_err(|_| Failure::usage(format!("{text} is not an e-mail address")))?;
    let found = names.0.into_iter().find(|(_, address)| *address == email.as_str()).map(|(id, _)| id);
    found
        .map(Some)
        .ok_or_else(|| Failure::new(format!("no account has the address {text}. For a deleted account, pass its ID")))
}

/// Addresses of accounts by ID.
struct Names(HashMap<String, String>);

impl Names {
    async fn of(vault: &OpenVault, scope: Scope) -> Result<Self, Failure> {
        let (accounts, mut names, mut cursor) = (vault.accounts(), HashMap::new(), None);
        loop {
            let page = PageRequest { limit: PAGE, cursor };
            let page = accounts.list(&Principal::Operator, scope, page).await?;
            let named = |listed: vault_core::account::ListedAccount| {
                (listed.grant.account.to_string(), listed.grant.email.to_string())
            };
            names.extend(page.items.into_iter().map(named));
            cursor = page.next;
            if cursor.is_none() || names.len() >= MAX_ADDRESSES {
                return Ok(Self(names));
            }
        }
    }

    /// Replaces the ID in a text such as `account:<id>` by the account's address.
    fn shown(&self, text: &str) -> String {
        let id = text.rsplit_once(':').map_or(text, |(_, id)| id);
        self.0.get(id).cloned().unwrap_or_else(|| text.to_owned())
    }
}

/// Summarizes the changes of an entry.
fn changed(entry: &AuditEntry) -> Option<String> {
    let word = |change: AuditChange| match (change.from, change.to) {
        (None, None) => change.field,
        (from, to) => {
            let [from, to] = [from, to].map(|value| value.unwrap_or_else(|| "none".to_owned()));
            format!("{} {from} → {to}", change.field)
        }
    };
    let words: Vec<String> = entry.changes().into_iter().map(word).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn row(entry: &AuditEntry, names: &Names) -> Vec<String> {
    let actor = match (&entry.account, &entry.integration) {
        (Some(account), _) => names.shown(account),
        (None, Some(integration)) => format!("integration:{integration}"),
        (None, None) => entry.actor.clone(),
    };
    let credentials = entry.credentials();
    let details = [
        entry.namespace.clone(),
        changed(entry),
        (entry.count > 1).then(|| format!("{} times", entry.count)),
        entry.network.clone().map(|network| format!("from {network}")),
        (!credentials.is_empty()).then(|| counted(u64::try_from(credentials.len()).unwrap_or_default(), "credential")),
        entry.purpose.clone().map(|purpose| format!("\"{purpose}\"")),
    ];
    let details: Vec<String> = details.into_iter().flatten().collect();
    vec![rfc3339(entry.at), entry.action.clone(), actor, names.shown(&entry.subject()), details.join(", ")]
}
