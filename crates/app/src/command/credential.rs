//! `orgvault credential …`

use crate::client::args::{CredentialCommand, DataArgs};
use crate::client::login::{Login, failure};
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::run_as::NamedFiles;
use crate::secret_file;
use crate::text::{Moment, rfc3339};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use vault_client::{
    ClientError, CredentialItem, ListFilter, ReplaceRequest, RequestOptions, SaveRequest, Session, VersionItem,
    WireJson,
};
use vault_core::port::Clock as _;
use vault_embed::SystemClock;

/// The longest data that is read, in bytes: as much as the server takes.
const MAX_DATA: usize = 64 * 1024;

/// Carries the command out.
pub(crate) fn run(command: CredentialCommand, output: Output) -> Result<(), Failure> {
    match command {
        CredentialCommand::Save { namespace, kind, data } => save(namespace, kind, data, output),
        CredentialCommand::List { namespace, kind } => list(namespace, kind, output),
        CredentialCommand::Show(credential) => show(&credential.id, output),
        CredentialCommand::Replace { credential, data, stage, promote, expires_at } => {
            replace(&credential.id, data, Becoming::of(stage, promote), expires_at, output)
        }
        CredentialCommand::Versions(credential) => versions(&credential.id, output),
        CredentialCommand::Promote { credential, number } => promote(&credential.id, number, output),
        CredentialCommand::DestroyVersion { credential, number, yes } => {
            destroy_version(&credential.id, number, yes, output)
        }
        CredentialCommand::Delete { credential, yes } => delete(&credential.id, yes, output),
    }
}

/// What a new version becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Becoming {
    Current,
    Staged,
    /// Staged, and current if nobody else changes the credential meanwhile.
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

/// A new version, as scripts read it.
#[derive(Serialize)]
struct Replaced<'a> {
    id: &'a str,
    version: i64,
    state: &'static str,
}

fn session() -> Result<Session, Failure> {
    Login::read()?.session()
}

/// What `request` of `doing` comes to, in the words of the command line.
fn told<T>(doing: impl FnOnce() -> String, answer: Result<T, ClientError>) -> Result<T, Failure> {
    answer.map_err(|error| failure(&doing(), &error))
}

impl DataArgs {
    /// The data, and how it is to be sent.
    fn read(self) -> Result<(WireJson, RequestOptions), Failure> {
        let bytes = secret_file::read_or_stdin(&NamedFiles::default(), "--data-file", &self.data_file, MAX_DATA)?;
        let text =
            std::str::from_utf8(&bytes).ok().filter(|text| serde_json::from_str::<Map<String, Value>>(text).is_ok());
        let text = text.ok_or_else(|| {
            Failure::new(format!("--data-file: {} does not hold a JSON object", self.data_file.display()))
        })?;
        let Self { verify, idempotency_key, .. } = self;
        Ok((SecretString::from(text).into(), RequestOptions { verify, idempotency_key, if_match: None }))
    }
}

fn save(namespace: String, kind: String, data: DataArgs, output: Output) -> Result<(), Failure> {
    let session = session()?;
    let (data, options) = data.read()?;
    let request = SaveRequest::new(kind, namespace, data);
    let saved = told(|| format!("save a credential in {}", request.namespace), session.save_with(&request, &options))?;
    output.print(&saved, &format!("Saved credential {}.", saved.id))
}

fn list(namespace: Option<String>, kind: Option<String>, output: Output) -> Result<(), Failure> {
    let session = session()?;
    let filter = ListFilter { namespace, kind, ..ListFilter::default() };
    let credentials: Result<Vec<CredentialItem>, ClientError> = session.list(filter).collect();
    let credentials = told(|| "list credentials".to_owned(), credentials)?;
    let rows: Vec<Vec<String>> = credentials
        .iter()
        .map(|item| {
            let expires_at = item.expires_at.clone().unwrap_or_default();
            let staged = item.staged_version.map(|number| number.to_string()).unwrap_or_default();
            let version = if item.damaged { format!("{} (damaged)", item.version) } else { item.version.to_string() };
            vec![item.id.clone(), item.kind.clone(), item.namespace.clone(), version, staged, expires_at]
        })
        .collect();
    output.print(&credentials, &table(&["ID", "TYPE", "NAMESPACE", "VERSION", "STAGED", "EXPIRES"], &rows))
}

fn show(id: &str, output: Output) -> Result<(), Failure> {
    let item = told(|| format!("show credential {id}"), session()?.show(id))?;
    output.print(&item, &described(&item))
}

fn replace(
    id: &str,
    data: DataArgs,
    becoming: Becoming,
    expires_at: Option<Moment>,
    output: Output,
) -> Result<(), Failure> {
    let session = session()?;
    let (data, options) = data.read()?;
    let expires_at = expires_at.map(|moment| rfc3339(moment.from(SystemClock.now())));
    let stage = (becoming != Becoming::Current).then_some(true);
    let request = ReplaceRequest { data, expires_at, stage };
    let replaced = told(|| format!("replace the data of credential {id}"), session.replace(id, &request, &options))?;
    let number = replaced.version;
    if becoming == Becoming::StagedThenCurrent {
        // Only if it is still the staged one: who staged another meanwhile did so knowing of this one.
        let doing = || format!("promote version {number} of credential {id}");
        let (item, tag) = told(doing, session.show_tagged(id))?;
        if item.staged_version != Some(number) && item.version != number {
            let message =
                "somebody else staged another version meanwhile. List them with `orgvault credential versions`";
            return Err(Failure::new(format!("cannot {}: {message}", doing())));
        }
        told(doing, session.promote(id, number, tag.as_deref()))?;
    }
    let (state, text) = match becoming {
        Becoming::Staged => {
            let text = format!(
                "Staged version {number} of credential {id}. It is issued once you promote it:\n  orgvault credential \
                 promote {id}"
            );
            ("staged", text)
        }
        _ => ("current", format!("Version {number} of credential {id} is issued from now on.")),
    };
    output.print(&Replaced { id, version: number, state }, &text)
}

fn versions(id: &str, output: Output) -> Result<(), Failure> {
    let versions = told(|| format!("list the versions of credential {id}"), session()?.versions(id))?;
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
            vec![number, state, made, fingerprint.to_owned()]
        })
        .collect();
    table(&["VERSION", "STATE", "CREATED", "FINGERPRINT"], &rows)
}

fn promote(id: &str, number: Option<i64>, output: Output) -> Result<(), Failure> {
    let session = session()?;
    let (number, tag) = match number {
        Some(number) => (number, None),
        None => {
            // What is promoted is what was looked at.
            let (item, tag) = told(|| format!("show credential {id}"), session.show_tagged(id))?;
            let none = || Failure::new(format!("credential {id} has no staged version. Name a version with --version"));
            (item.staged_version.ok_or_else(none)?, tag)
        }
    };
    let answer = session.promote(id, number, tag.as_deref());
    let item = told(|| format!("promote version {number} of credential {id}"), answer)?;
    output.print(&item, &format!("Version {number} of credential {id} is issued from now on."))
}

fn destroy_version(id: &str, number: i64, yes: bool, output: Output) -> Result<(), Failure> {
    let session = session()?;
    if !yes {
        let question = format!("This permanently destroys version {number} of credential {id}.");
        output.confirm(&question, &number.to_string())?;
    }
    let answer = session.destroy_version(id, number, None);
    told(|| format!("destroy version {number} of credential {id}"), answer)?;
    output.print(&json!({"id": id, "version": number}), &format!("Destroyed version {number} of credential {id}."))
}

fn delete(id: &str, yes: bool, output: Output) -> Result<(), Failure> {
    let session = session()?;
    if !yes {
        let item = told(|| format!("show credential {id}"), session.show(id))?;
        let question = format!(
            "This permanently deletes credential {id} ({}, namespace {}) with all of its versions.",
            item.kind, item.namespace
        );
        output.confirm(&question, &item.namespace)?;
    }
    told(|| format!("delete credential {id}"), session.delete(id))?;
    output.print(&json!({"id": id}), &format!("Deleted credential {id}."))
}

/// A credential, for people.
fn described(item: &CredentialItem) -> String {
    let mut rows = vec![
        ("id", item.id.clone()),
        ("type", item.kind.clone()),
        ("namespace", item.namespace.clone()),
        ("version", item.version.to_string()),
    ];
    rows.extend(item.staged_version.map(|number| ("staged version", number.to_string())));
    rows.extend(item.expires_at.clone().map(|at| ("expires", at)));
    rows.push(("created", item.created_at.clone()));
    rows.push(("changed", item.updated_at.clone()));
    match &item.information {
        Some(information) => rows.extend(information.iter().map(|(name, value)| (&**name, shown(value)))),
        None => rows.push(("damaged", "yes; ask an operator to look at the server's log".to_owned())),
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<width$}  {value}"); // a String takes everything
        text
    })
}

/// A value of the information, without the quotation marks of JSON.
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
    fn a_credential_is_described_line_by_line() {
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
    fn versions_are_told_apart_by_their_fingerprints() {
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
