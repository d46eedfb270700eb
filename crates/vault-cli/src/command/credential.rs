//! `orgvault credential …`

use super::several;
use crate::client::args::{
    AskingArgs, CredentialArg, CredentialArgs, CredentialCommand, DataArgs, MetadataArgs, PartArgs,
};
use crate::client::data::{self, Data, Difference, printable};
use crate::client::login::{Login, Profile, failure};
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::secret_file;
use crate::text::{Moment, rfc3339};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use vault_client::{
    ClientError, CredentialHolder, CredentialItem, DescribeRequest, FoundKey, HealthItem, ListFilter, ProblemCode,
    ProviderTrust, ReplaceRequest, RequestOptions, SaveRequest, Session, VersionItem, WireJson,
};
use vault_core::credential::CredentialType;
use vault_core::port::Clock as _;
use vault_crypto::SystemClock;

/// Maximum time to wait for the result of a check.
const CHECK_DEADLINE: Duration = Duration::from_secs(60);
/// Maximum size of a text with a key, in bytes.
const MAX_KEY: usize = 64 * 1024;
/// Interval of requests for the result.
const CHECK_POLL: Duration = Duration::from_millis(500);

/// Runs a command of `orgvault credential`.
pub fn run(args: CredentialArgs, output: Output) -> Result<ExitCode, Failure> {
    let profile = args.profile.profile;
    carry_out(args.command, &profile, output).map_err(|failure| failure.with_profile(&profile))
}

fn carry_out(command: CredentialCommand, profile: &Profile, output: Output) -> Result<ExitCode, Failure> {
    let session = Login::session(profile)?;
    let session = &session;
    match command {
        CredentialCommand::Save { namespace, kind, data, labels, allow_several, metadata } => {
            let request = SaveRequest::new(kind, namespace, ());
            save(session, request, data, labels, allow_several, metadata, output)
        }
        CredentialCommand::List { namespace, kind, labels, health, expires_before } => {
            let labels = labels.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            let expires_before = expires_before.map(moment);
            let filter = ListFilter { namespace, kind, labels, health, expires_before, ..ListFilter::default() };
            list(session, filter, output)
        }
        CredentialCommand::Show { credential: CredentialArg { id }, part } => match part {
            PartArgs { versions: true, .. } => versions(session, &id, output),
            PartArgs { uses: true, .. } => uses(session, &id, output),
            PartArgs { holders: true, .. } => holders(session, &id, output),
            PartArgs { trust: true, .. } => trust(session, &id, output),
            _ => show(session, &id, output),
        },
        CredentialCommand::Replace { credential, data, stage, promote, expires_at, asking } => {
            let new = Replacing { data, becoming: Becoming::of(stage, promote), expires_at };
            replace(session, &credential.id, new, &asking, output)
        }
        CredentialCommand::Set { credential, labels, metadata, no_description, no_expires_at } => {
            let request = DescribeRequest {
                labels: (!labels.is_empty()).then(|| labels.into_iter().collect()),
                description: metadata.description.map(Some).or(no_description.then_some(None)),
                expires_at: metadata.expires_at.map(|at| Some(moment(at))).or(no_expires_at.then_some(None)),
                vend: metadata.vend,
            };
            if request == DescribeRequest::default() {
                return Err(Failure::usage("nothing to change: pass --label, --description, --expires-at or --vend"));
            }
            describe(session, &credential.id, &request, output)
        }
        CredentialCommand::Find { text, file } => find(session, text, file.as_deref(), output),
        CredentialCommand::Check { credential, number, no_wait } => {
            return check(session, &credential.id, number, !no_wait, output);
        }
        CredentialCommand::Promote { credential, number, yes } => promote(session, &credential.id, number, yes, output),
        CredentialCommand::DestroyVersion { credential, number, yes } => {
            destroy_version(session, &credential.id, number, yes, output)
        }
        CredentialCommand::Delete { credential, asking } => delete(session, &credential.id, &asking, output),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Formats a time as the HTTP API accepts it.
fn moment(moment: Moment) -> String {
    rfc3339(moment.from(SystemClock.now()))
}

/// The state that a new version gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Becoming {
    Current,
    Staged,
    /// Staged, and then promoted unless another user changes the credential in the meantime.
    StagedThenCurrent,
}

impl Becoming {
    fn of(stage: bool, promote: bool) -> Self {
        match (stage, promote) {
            (true, _) => Self::Staged,
            (false, true) => Self::StagedThenCurrent,
            (false, false) => Self::Current,
        }
    }
}

/// A new version in JSON output.
#[derive(Serialize)]
struct Replaced<'a> {
    id: &'a str,
    version: i64,
    state: &'static str,
}

/// Converts the error of a request. `doing` names the operation.
fn reported<T>(doing: impl FnOnce() -> String, answer: Result<T, ClientError>) -> Result<T, Failure> {
    answer.map_err(|error| match error.code() {
        Some(ProblemCode::NotFound) => Failure::new(format!(
            "cannot {}: no such credential or version; `orgvault credential list` shows all",
            doing()
        )),
        _ => failure(&doing(), &error),
    })
}

impl DataArgs {
    /// Reads the data of a credential of the type that `kind` returns, and the options of the request.
    fn read(self, kind: impl FnOnce() -> Result<String, Failure>) -> Result<(Data, RequestOptions), Failure> {
        let data = data::read(self.data_file.as_deref(), kind)?;
        Ok((data, RequestOptions { verify: self.verify, ..RequestOptions::default() }))
    }
}

/// Sends data. If a user typed it and the server rejects fields, prompts for these and sends it again.
fn sent<T>(
    data: &mut Data,
    doing: impl Fn() -> String,
    send: impl Fn(WireJson) -> Result<T, ClientError>,
) -> Result<T, Failure> {
    loop {
        let error = match send(data.to_wire()?) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let refused: Vec<(String, String)> = match &error {
            ClientError::Problem { problem, .. } => {
                problem.errors.iter().map(|error| (error.pointer.to_string(), error.detail.to_string())).collect()
            }
            _ => Vec::new(),
        };
        if !data.ask_again(&refused)? {
            return Err(failure(&doing(), &error));
        }
    }
}

/// Copies the locations of the current version to `data`. Returns lines about the copied fields and other differences.
fn compare(data: &mut Data, item: &CredentialItem) -> Vec<String> {
    let Some(before) = &item.information else { return Vec::new() };
    let taken = data.carry_over(&item.kind, before);
    let mut lines = Vec::new();
    if !taken.is_empty() {
        lines.push(format!("Copied from version {}: {}.", item.version, taken.join(", ")));
    }
    let differences = data.differences(&item.kind, before);
    let line = |Difference { field, before, after }: &Difference| format!("Changed: {field} from {before} to {after}.");
    lines.extend(differences.iter().map(line).map(|line| printable(&line)));
    lines
}

fn save(
    session: &Session,
    of: SaveRequest<()>,
    data: DataArgs,
    labels: Vec<(String, String)>,
    allow_several: bool,
    metadata: MetadataArgs,
    output: Output,
) -> Result<(), Failure> {
    let kind = of.kind.clone();
    let (mut data, options) = data.read(|| Ok(kind))?;
    let labels: Option<BTreeMap<String, String>> = (!labels.is_empty()).then(|| labels.into_iter().collect());
    let expires_at = metadata.expires_at.map(moment);
    if !allow_several && let Some(several) = several::find(session, &of.namespace, 1)? {
        several.confirm("Save another one?", output)?;
    }
    let doing = || "save the credential".to_owned();
    let saved = sent(&mut data, doing, |data| {
        let request = SaveRequest {
            labels: labels.clone(),
            description: metadata.description.clone(),
            expires_at: expires_at.clone(),
            vend: metadata.vend.clone(),
            ..SaveRequest::new(of.kind.clone(), of.namespace.clone(), data)
        };
        session.save_with(&request, &options)
    })?;
    let id = &saved.id;
    let text = match CredentialType::parse(&of.kind).is_some_and(CredentialType::is_keyless) {
        true => {
            format!("Saved credential {id}. To set up its provider trust, run `orgvault credential show {id} --trust`.")
        }
        false => format!("Saved credential {id}."),
    };
    output.print(&saved, &text)
}

fn list(session: &Session, filter: ListFilter, output: Output) -> Result<(), Failure> {
    let credentials: Result<Vec<CredentialItem>, ClientError> = session.list(filter).collect();
    let credentials = reported(|| "list credentials".to_owned(), credentials)?;
    let rows: Vec<Vec<String>> = credentials
        .iter()
        .map(|item| {
            let expires_at = item.expires_at.clone().unwrap_or_default();
            let staged = item.staged_version.map(|number| number.to_string()).unwrap_or_default();
            let version = if item.damaged { format!("{} (damaged)", item.version) } else { item.version.to_string() };
            let health = item.health.state.clone();
            vec![item.id.clone(), item.kind.clone(), item.namespace.clone(), version, staged, health, expires_at]
        })
        .collect();
    output.print(&credentials, &table(&["ID", "TYPE", "NAMESPACE", "VERSION", "STAGED", "HEALTH", "EXPIRES"], &rows))
}

fn show(session: &Session, id: &str, output: Output) -> Result<(), Failure> {
    let item = reported(|| format!("show credential {id}"), session.show(id))?;
    output.print(&item, &described(&item))
}

/// The new data of a credential, and how to apply it.
struct Replacing {
    data: DataArgs,
    becoming: Becoming,
    expires_at: Option<Moment>,
}

fn replace(session: &Session, id: &str, new: Replacing, asking: &AskingArgs, output: Output) -> Result<(), Failure> {
    let Replacing { data, becoming, expires_at } = new;
    let item = reported(|| format!("show credential {id}"), session.show(id))?;
    if asking.dry_run && data.data_file.is_none() {
        return dry_run(session, id, Vec::new(), output);
    }
    let kind = item.kind.clone();
    let doing = || format!("replace the data of credential {id}");
    let (mut data, options) = data.read(|| Ok(kind))?;
    let compared = compare(&mut data, &item);
    if asking.dry_run {
        // The comparison validates the data like a replacement.
        let same = match session.matches(id, data.to_wire()?) {
            // The data is valid, but the limit on comparisons was reached.
            Err(error) if error.code() == Some(ProblemCode::TooManyRequests) => false,
            answer => reported(doing, answer).map_err(|error| with_secrets(error, &data, &item))?,
        };
        let same = same.then(|| format!("The data is that of version {}.", item.version));
        return dry_run(session, id, compared.into_iter().chain(same).collect(), output);
    }
    for line in &compared {
        let _ = writeln!(io::stderr(), "{line}"); // standard error may be closed
    }
    // A staged version affects no job, and a script cannot answer.
    if becoming != Becoming::Staged && !asking.yes && io::stdin().is_terminal() {
        let question = format!("{} They get the new data from their next activation on.", used_by(session, id)?);
        output.confirm(&question, "yes")?;
    }
    let expires_at = expires_at.map(moment);
    let stage = (becoming != Becoming::Current).then_some(true);
    let replaced = sent(&mut data, doing, |data| {
        session.replace(id, &ReplaceRequest { data, expires_at: expires_at.clone(), stage }, &options)
    });
    let replaced = replaced.map_err(|error| with_secrets(error, &data, &item))?;
    let number = replaced.version;
    if becoming == Becoming::StagedThenCurrent {
        // Promote it only if no other version was staged in the meantime. The user who staged it may rely on it.
        let doing = || format!("promote version {number} of credential {id}");
        let (item, tag) = reported(doing, session.show_tagged(id))?;
        if item.staged_version != Some(number) && item.version != number {
            return Err(Failure::new(format!(
                "cannot {}: another user staged a version in the meantime. List them with `orgvault credential show {id} \
                 --versions`",
                doing()
            )));
        }
        reported(doing, session.promote(id, number, tag.as_deref()))?;
    }
    let (state, text) = match becoming {
        Becoming::Staged => {
            let text = format!(
                "Staged version {number} of credential {id}. Jobs get it after you promote it:\n  orgvault credential \
                 promote {id}"
            );
            ("staged", text)
        }
        _ => ("current", format!("Saved version {number} of credential {id}. {}", next_steps(id))),
    };
    output.print(&Replaced { id, version: number, state }, &text)
}

/// Adds an explanation to the error if the data lacks required secrets.
fn with_secrets(error: Failure, data: &Data, item: &CredentialItem) -> Failure {
    let missing = data.missing_secrets(&item.kind);
    if missing.is_empty() {
        return error;
    }
    error.noting(format!(
        "a replacement contains all data, with {}: the server that saves credentials cannot decrypt the stored secret, so it \
         cannot combine it with new fields",
        missing.join(", ")
    ))
}

fn versions(session: &Session, id: &str, output: Output) -> Result<(), Failure> {
    let versions = reported(|| format!("list the versions of credential {id}"), session.versions(id))?;
    output.print(&versions, &versions_table(&versions))
}

fn versions_table(versions: &[VersionItem]) -> String {
    let rows: Vec<Vec<String>> = versions
        .iter()
        .map(|version| {
            let fingerprint = version.information.as_ref().and_then(|shown| shown.get("fingerprint")?.as_str());
            let fingerprint = if version.damaged { "(damaged)" } else { fingerprint.unwrap_or_default() };
            let (number, state, made) =
                (version.version.to_string(), version.state.clone(), version.created_at.clone());
            let health = version.health.as_ref().map(|health| match &health.reason {
                Some(reason) => format!("{}: {reason}", health.state),
                None => health.state.clone(),
            });
            vec![number, state, made, fingerprint.to_owned(), health.unwrap_or_default()]
        })
        .collect();
    table(&["VERSION", "STATE", "CREATED", "FINGERPRINT", "HEALTH"], &rows)
}

fn promote(session: &Session, id: &str, number: Option<i64>, yes: bool, output: Output) -> Result<(), Failure> {
    let (number, tag) = match number {
        Some(number) => (number, None),
        None => {
            // Pass the entity tag, so that exactly the version that was shown is promoted.
            let (item, tag) = reported(|| format!("show credential {id}"), session.show_tagged(id))?;
            let none = || Failure::new(format!("credential {id} has no staged version. Name a version with --version"));
            (item.staged_version.ok_or_else(none)?, tag)
        }
    };
    if !yes {
        let versions = reported(|| format!("list the versions of credential {id}"), session.versions(id))?;
        if let Some(HealthItem { state, reason, .. }) =
            checked(&versions, number).filter(|health| health.state == "failing")
        {
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let question = format!("The last check of version {number} found it {state}{reason}.");
            output.confirm(&printable(&question), "yes")?;
        }
    }
    let answer = session.promote(id, number, tag.as_deref());
    let item = reported(|| format!("promote version {number} of credential {id}"), answer)?;
    output.print(&item, &format!("Promoted version {number} of credential {id}. {}", next_steps(id)))
}

/// Returns what happens after another version became current.
fn next_steps(id: &str) -> String {
    format!(
        "Jobs get it at their next activation. `orgvault credential show {id} --holders` lists those that may use another \
         version until when."
    )
}

fn destroy_version(session: &Session, id: &str, number: i64, yes: bool, output: Output) -> Result<(), Failure> {
    if !yes {
        let mut question = format!("This permanently destroys version {number} of credential {id}.");
        for one in all_holders(session, id)?.into_iter().filter(|one| one.version == number) {
            let until = one.held_until.map(|until| format!(" {} may use it until {until}.", one.integration));
            question.extend(until);
        }
        output.confirm(&question, &number.to_string())?;
    }
    let answer = session.destroy_version(id, number, None);
    reported(|| format!("destroy version {number} of credential {id}"), answer)?;
    output.print(&json!({"id": id, "version": number}), &format!("Destroyed version {number} of credential {id}."))
}

fn delete(session: &Session, id: &str, asking: &AskingArgs, output: Output) -> Result<(), Failure> {
    if asking.dry_run {
        return dry_run(session, id, Vec::new(), output);
    }
    if !asking.yes {
        let item = reported(|| format!("show credential {id}"), session.show(id))?;
        let question = format!(
            "{} This permanently deletes credential {id} ({}, namespace {}) with all of its versions.",
            used_by(session, id)?,
            item.kind,
            item.namespace
        );
        output.confirm(&question, &item.namespace)?;
    }
    reported(|| format!("delete credential {id}"), session.delete(id))?;
    output.print(&json!({"id": id}), &format!("Deleted credential {id}."))
}

fn describe(session: &Session, id: &str, request: &DescribeRequest, output: Output) -> Result<(), Failure> {
    let item = reported(|| format!("change credential {id}"), session.describe(id, request, None))?;
    output.print(&item, &described(&item))
}

fn find(session: &Session, text: Option<String>, file: Option<&Path>, output: Output) -> Result<(), Failure> {
    let text = match file {
        Some(file) => {
            let bytes = secret_file::read_or_stdin("--file", file, MAX_KEY)?;
            let text = String::from_utf8(bytes.to_vec());
            text.map_err(|_| Failure::new(format!("--file: {} is not UTF-8 text", file.display())))?
        }
        None => text.unwrap_or_default(),
    };
    let found = reported(|| "find the key".to_owned(), session.find_key(SecretString::from(text).into()))?;
    let row = |one: &FoundKey| {
        let FoundKey { id, namespace, version, state, matched, .. } = one;
        vec![id.clone(), namespace.clone(), version.to_string(), state.clone(), matched.clone()]
    };
    let text = match found.is_empty() {
        true => "No version that is kept contains this key.".to_owned(),
        false => table(&["ID", "NAMESPACE", "VERSION", "STATE", "MATCHED"], &found.iter().map(row).collect::<Vec<_>>()),
    };
    output.print(&found, &text)
}

/// Requests a check and waits for its result. Returns status 1 if the check failed.
fn check(session: &Session, id: &str, number: Option<i64>, wait: bool, output: Output) -> Result<ExitCode, Failure> {
    let doing = || format!("check credential {id}");
    let item = reported(doing, session.show(id))?;
    let number = number.or(item.staged_version).unwrap_or(item.version);
    let before = checked(&reported(doing, session.versions(id))?, number);
    reported(doing, session.request_check(id, Some(number)))?;
    if !wait {
        let text = format!(
            "Requested a check of version {number}. `orgvault credential show {id} --versions` shows the result."
        );
        output.print(&json!({"id": id, "version": number, "health": Value::Null}), &text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let began = Instant::now();
    let health = loop {
        let found = checked(&reported(doing, session.versions(id))?, number);
        match found {
            Some(health) if before.as_ref().is_none_or(|before| before.checked_at != health.checked_at) => {
                break health;
            }
            _ if began.elapsed() > CHECK_DEADLINE => {
                let hint = "Is a process with the activation listener running? The result appears in";
                return Err(Failure::new(format!(
                    "cannot {}: no result within a minute. {hint} `orgvault credential show {id} --versions`",
                    doing()
                )));
            }
            _ => std::thread::sleep(CHECK_POLL),
        }
    };
    let healthy = health.state == "healthy";
    let text = match &health.reason {
        Some(reason) => format!("Version {number} of credential {id} is {}: {reason}.", health.state),
        None => format!("Version {number} of credential {id} is {}.", health.state),
    };
    output.print(&json!({"id": id, "version": number, "health": health}), &text)?;
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn trust(session: &Session, id: &str, output: Output) -> Result<(), Failure> {
    let trust = reported(|| format!("show the provider trust of credential {id}"), session.provider_trust(id))?;
    output.print(&trust, &instructions(&trust))
}

/// Formats the instructions for a provider trust: the values, then the steps with their texts indented.
fn instructions(trust: &ProviderTrust) -> String {
    let ProviderTrust { issuer, subject, audience, steps } = trust;
    let mut text = format!("issuer    {issuer}\nsubject   {subject}\naudience  {audience}");
    for (number, step) in (1..).zip(steps) {
        let lines: String = step.text.lines().map(|line| format!("\n   {line}")).collect();
        let _ = write!(text, "\n{number}. {}:{lines}", step.title); // writing to a String cannot fail
    }
    text
}

/// Returns the result of the last check of version `number`.
fn checked(versions: &[VersionItem], number: i64) -> Option<HealthItem> {
    versions.iter().find(|version| version.version == number)?.health.clone()
}

fn uses(session: &Session, id: &str, output: Output) -> Result<(), Failure> {
    let (mut uses, mut cursor) = (Vec::new(), None);
    loop {
        let (page, next) =
            reported(|| format!("list the uses of credential {id}"), session.uses(id, cursor.as_deref()))?;
        uses.extend(page);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    let rows: Vec<Vec<String>> = uses
        .iter()
        .map(|used| {
            let end = match &used.ended_at {
                Some(at) => format!("{at} (ended)"),
                None => used.expires_at.clone(),
            };
            let purpose = used.purpose.clone().unwrap_or_default();
            vec![used.at.clone(), end, used.integration.clone(), used.version.to_string(), used.form.clone(), purpose]
        })
        .collect();
    output.print(&uses, &table(&["START", "EXPIRES", "INTEGRATION", "VERSION", "FORM", "PURPOSE"], &rows))
}

/// An integration that activated a credential in the last 30 days.
#[derive(Serialize)]
struct UsedBy {
    integration: String,
    activations: i64,
    last: String,
}

/// Returns who used the credential in the last 30 days, by integration and version.
fn all_holders(session: &Session, id: &str) -> Result<Vec<CredentialHolder>, Failure> {
    reported(|| format!("list the holders of credential {id}"), session.holders(id))
}

/// Lists the integrations that may use another version than the current one.
fn holders(session: &Session, id: &str, output: Output) -> Result<(), Failure> {
    let mut holders = all_holders(session, id)?;
    holders.retain(|one| !one.current && one.held_until.is_some());
    let row = |one: &CredentialHolder| {
        vec![one.integration.clone(), one.version.to_string(), one.held_until.clone().unwrap_or_default()]
    };
    let rows: Vec<Vec<String>> = holders.iter().map(row).collect();
    let text = match rows.is_empty() {
        true => format!("No integration may use another version of credential {id} than the current one."),
        false => table(&["INTEGRATION", "VERSION", "UNTIL"], &rows),
    };
    output.print(&holders, &text)
}

/// Returns the integrations that activated the credential in the last 30 days, most recent first.
fn users(holders: Vec<CredentialHolder>) -> Vec<UsedBy> {
    let mut users = BTreeMap::<String, UsedBy>::new();
    for CredentialHolder { integration, activations, last_activated_at: last, .. } in holders {
        let new = || UsedBy { integration: integration.clone(), activations: 0, last: String::new() };
        let user = users.entry(integration.clone()).or_insert_with(new);
        user.activations += activations;
        user.last = last.max(std::mem::take(&mut user.last));
    }
    let mut users: Vec<_> = users.into_values().collect();
    users.sort_by(|one, other| other.last.cmp(&one.last));
    users
}

fn dry_run(session: &Session, id: &str, compared: Vec<String>, output: Output) -> Result<(), Failure> {
    let users = users(all_holders(session, id)?);
    let rows: Vec<Vec<String>> = users
        .iter()
        .map(|user| vec![user.integration.clone(), user.activations.to_string(), user.last.clone()])
        .collect();
    let changes: String = compared.iter().map(|line| format!("{line}\n")).collect();
    let text = match users.is_empty() {
        true => format!("{changes}No integration activated it in the last 30 days. Nothing was changed."),
        false => format!("{changes}{}\nNothing was changed.", table(&["INTEGRATION", "ACTIVATIONS", "LAST"], &rows)),
    };
    output.print(&json!({"id": id, "used_by": users, "changes": compared}), &text)
}

/// Returns a sentence that names the affected integrations.
fn used_by(session: &Session, id: &str) -> Result<String, Failure> {
    let names: Vec<String> = users(all_holders(session, id)?).into_iter().map(|user| user.integration).collect();
    Ok(match names.is_empty() {
        true => "No integration activated this credential in the last 30 days.".to_owned(),
        false => format!("Activated in the last 30 days by: {}.", names.join(", ")),
    })
}

/// Formats a credential for the terminal.
fn described(item: &CredentialItem) -> String {
    let mut rows = vec![
        ("id", item.id.clone()),
        ("type", item.kind.clone()),
        ("namespace", item.namespace.clone()),
        ("version", item.version.to_string()),
    ];
    rows.extend(item.staged_version.map(|number| ("staged version", number.to_string())));
    let previous = item.previous_version.zip(item.previous_version_until.as_ref());
    rows.extend(previous.map(|(number, until)| ("previous version", format!("{number}, kept until {until}"))));
    rows.extend(item.expires_at.clone().map(|at| ("expires", at)));
    let health = &item.health;
    rows.push((
        "health",
        [Some(&health.state), health.reason.as_ref()]
            .map(|text| text.map(String::as_str))
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(": "),
    ));
    rows.push(("vend", item.vend.clone()));
    rows.extend(item.description.clone().map(|text| ("description", text)));
    let labels = item.labels.iter().flatten().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    rows.extend((!labels.is_empty()).then(|| ("labels", labels.join(" "))));
    rows.extend(item.last_activated_at.clone().map(|at| ("last activated", at)));
    rows.push(("created", item.created_at.clone()));
    rows.push(("changed", item.updated_at.clone()));
    match &item.information {
        Some(information) => rows.extend(information.iter().map(|(name, value)| (&**name, shown(value)))),
        None => rows.push(("damaged", "yes; ask an operator to check the server's log".to_owned())),
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<width$}  {value}"); // writing to a String cannot fail
        text
    })
}

/// Formats a value of the information, without JSON quotation marks.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_is_described_line_by_line() {
        let item: CredentialItem = serde_json::from_str(
            r#"{"id":"i","type":"s3","namespace":"a/b","information":{"bucket":"b","path_style_access":true,
                "secrets":["secret_access_key","external_id"]},"version":3,"created_at":"c","updated_at":"u",
                "labels":{},"vend":"any","health":{"state":"unchecked"},
                "expires_at":"e","staged_version":4}"#,
        )
        .expect("an item");
        let text = described(&item);
        for line in
            ["namespace          a/b", "staged version     4", "secrets            secret_access_key, external_id"]
        {
            assert!(text.lines().any(|found| found == line), "{text}");
        }
        let damaged = CredentialItem { information: None, damaged: true, ..item };
        assert!(described(&damaged).contains("ask an operator"));
    }

    #[test]
    fn fingerprints_distinguish_versions() {
        let versions: Vec<VersionItem> = serde_json::from_str(
            r#"[{"version":2,"state":"current","information":{"fingerprint":"9f1c2ab04d7e"},"created_at":"c"},
                {"version":1,"state":"previous","damaged":true,"created_at":"b"}]"#,
        )
        .expect("versions");
        let text = versions_table(&versions);
        assert!(
            text.contains("2        current   c        9f1c2ab04d7e\n1        previous  b        (damaged)\n"),
            "{text}"
        );
    }
}
