//! `orgvault export` and `apply`: configuration as code, over HTTP with the login of an admin.

use crate::client::args::ProfileArg;
use crate::client::data::printable;
use crate::client::login::{Login, failure};
use crate::failure::Failure;
use crate::manifest::document::{self, Credential, Integration, Manifest};
use crate::manifest::plan::{self, Change, Present, label, place};
use crate::manifest::{DATA_VERSION, NAME, Violation, beneath, export, references};
use crate::output::{Output, note};
use clap::Args;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vault_client::{
    AddReceiverRequest, ChangeAccountRequest, ChangeIntegrationRequest, ChangeReceiverRequest, ClientError,
    CreateIntegrationRequest, InviteRequest, IssuedIntegration, ListFilter, ReplaceRequest, RequestOptions,
    SaveRequest, Session, WireJson,
};

/// Exit status of a dry run with changes.
const DIFFERS: u8 = 3;
/// The largest document that is read, in bytes.
const MAX_DOCUMENT: usize = 4 * 1024 * 1024;
/// Maximum number of idempotency keys for a save. Another key is needed if an earlier one created a credential that was
/// deleted since.
const SAVE_TRIES: usize = 100;

#[expect(missing_docs, reason = "clap would print a doc comment as the description of the command")]
#[derive(Args)]
pub struct ExportArgs {
    #[command(flatten)]
    profile: ProfileArg,
}

#[expect(missing_docs, reason = "clap would print a doc comment as the description of the command")]
#[derive(Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    profile: ProfileArg,
    /// Document (YAML or JSON), or directory of documents; repeatable
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    files: Vec<PathBuf>,
    /// Delete credentials and integrations of the documents' set that the documents no longer contain
    #[arg(long)]
    prune: bool,
    /// Only show the changes. Exits with status 3 if there are changes
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// New file (mode 0600) for tokens of integrations, signing secrets of webhooks and enrolment codes. Required if
    /// the documents create one of these
    #[arg(long, value_name = "FILE")]
    secrets_out: Option<PathBuf>,
    /// Apply without confirmation
    #[arg(long)]
    yes: bool,
}

/// Runs `orgvault export`.
pub fn export(args: &ExportArgs, output: Output) -> Result<ExitCode, Failure> {
    let session = Login::session(&args.profile.profile)?;
    let (present, nameless) = read_present(&session, true)?;
    let (mut text, omitted) = export::export(&present);
    let nameless_of = format!("{} without the label {NAME}", count(nameless.len(), "credential"));
    let omitted_of = format!("{} that documents cannot describe", count(omitted.len(), "object"));
    for (what, lines) in [(nameless_of, nameless), (omitted_of, omitted)] {
        if lines.is_empty() {
            continue;
        }
        let message = format!("{what} {} left out", if lines.len() == 1 { "is" } else { "are" });
        note(&message);
        let _ = write!(text, "\n# {message}:\n"); // a String takes everything
        lines.iter().for_each(|line| text.push_str(&format!("#   {}\n", printable(line))));
    }
    output.print(&json!({"document": text}), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `orgvault apply`.
pub fn apply(args: &ApplyArgs, output: Output) -> Result<ExitCode, Failure> {
    let session = Login::session(&args.profile.profile)?;
    let Planned { manifest, changes, uninvited, data, urls } = Planned::read(&session, args)?;
    if args.dry_run {
        let document = json!({"changes": texts_of(&changes), "uninvited": uninvited});
        output.print(&document, &text_of(&changes))?;
        return Ok(if changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) });
    }
    let makes_secrets = changes.iter().find(|change| match change {
        Change::Invite { .. } => true,
        Change::CreateIntegration(integration) => integration.request.token == Some(true),
        Change::AddReceiver(receiver) => receiver.request.url.is_some(),
        _ => false,
    });
    if let (Some(change), None) = (makes_secrets, &args.secrets_out) {
        return Err(Failure::usage(format!(
            "`{change}` creates a secret that is shown only once: pass --secrets-out FILE"
        )));
    }
    if !changes.is_empty() && !args.yes {
        write!(io::stderr(), "{}", text_of(&changes))?;
        output.confirm(&format!("This makes {}.", count(changes.len(), "change")), "yes")?;
    }
    // Create the file before the first change whose secret it must contain.
    let secrets = args.secrets_out.as_deref().map(Secrets::create).transpose()?;
    let mut apply = Apply { session: &session, set: &manifest.set, data, urls, secrets };
    let mut done = Vec::new();
    for change in &changes {
        if let Err(error) = apply.make(change) {
            output.print(&document_of(&done), &format!("{}{}", text_of(&done), count_done(&done, &changes)))?;
            return Err(error.noting(format!(
                "stopped after {} of {} changes. Run it again",
                done.len(),
                changes.len()
            )));
        }
        done.push(change.clone());
    }
    output.print(&document_of(&done), &text_of(&done))?;
    Ok(ExitCode::SUCCESS)
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn count_done(done: &[Change], all: &[Change]) -> String {
    format!("Made {} of {}\n", done.len(), count(all.len(), "change"))
}

fn document_of(changes: &[Change]) -> Value {
    json!({"changes": texts_of(changes)})
}

fn texts_of(changes: &[Change]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

fn text_of(changes: &[Change]) -> String {
    match changes.is_empty() {
        true => "Nothing to change.\n".to_owned(),
        false => changes.iter().map(|change| format!("{}\n", printable(&change.to_string()))).collect(),
    }
}

/// The changes that documents require, and the data for them.
struct Planned {
    manifest: Manifest,
    changes: Vec<Change>,
    /// Disabled people without an account.
    uninvited: Vec<String>,
    /// By namespace and name.
    data: BTreeMap<(String, String), Zeroizing<String>>,
    /// Complete URLs of new webhooks, by the URL without secrets.
    urls: BTreeMap<String, Zeroizing<String>>,
}

impl Planned {
    /// Reads and validates everything before anything is changed.
    fn read(session: &Session, args: &ApplyArgs) -> Result<Self, Failure> {
        let manifest = document::read(&texts(&args.files)?).map_err(|violations| reported(&violations))?;
        if args.prune && manifest.credentials.is_empty() && manifest.integrations.is_empty() {
            let reason = "the documents describe nothing, so all of the set would be deleted";
            return Err(Failure::usage(format!("--prune: {reason}; delete it by hand if that is meant")));
        }
        let (present, _) = read_present(session, !manifest.people.is_empty())?;
        let changes = plan::plan(&manifest, &present, args.prune).map_err(|violations| reported(&violations))?;
        let (mut data, mut violations) = (BTreeMap::new(), Vec::new());
        let sent = changes.iter().filter_map(|change| match change {
            Change::Save(credential) | Change::Replace { credential, .. } => Some(credential),
            _ => None,
        });
        for credential in sent {
            match references::resolve(credential) {
                Ok(text) => drop(data.insert(identity(credential), text)),
                Err(found) => violations.extend(found),
            }
        }
        let mut urls = BTreeMap::new();
        for change in &changes {
            let Change::AddReceiver(receiver) = change else { continue };
            match references::url(receiver) {
                Ok(url) => urls.extend(url.map(|url| (receiver.request.text().to_owned(), url))),
                Err(violation) => violations.push(violation),
            }
        }
        let uninvited: Vec<String> =
            plan::uninvited(&manifest, &present).into_iter().map(|email| email.to_owned()).collect();
        if violations.is_empty() {
            for email in &uninvited {
                note(&printable(&format!("{email} is disabled and has no account, so no invitation is sent")));
            }
            Ok(Self { manifest, changes, uninvited, data, urls })
        } else {
            Err(reported(&violations))
        }
    }
}

/// Returns namespace and name.
fn identity(credential: &Credential) -> (String, String) {
    (credential.request.namespace.clone(), credential.own.name.clone())
}

/// Returns an error that lists all violations, one per line.
fn reported(violations: &[Violation]) -> Failure {
    let lines: Vec<String> = violations.iter().map(|violation| printable(&violation.to_string())).collect();
    Failure::new(format!("nothing was changed:\n  {}", lines.join("\n  ")))
}

/// Reads the documents, including those in the given directories.
fn texts(paths: &[PathBuf]) -> Result<Vec<(PathBuf, String)>, Failure> {
    let failed = |path: &Path, error: io::Error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let mut texts = Vec::new();
    for path in paths {
        if !path.is_dir() {
            // A named file may be a pipe: `-f <(…)`.
            let most = MAX_DOCUMENT as u64 + 1;
            let mut text = String::new();
            let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
            if read.map_err(|error| failed(path, error))? > MAX_DOCUMENT {
                return Err(Failure::new(format!("{} has more than {MAX_DOCUMENT} bytes", path.display())));
            }
            texts.push((path.clone(), text));
            continue;
        }
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|error| failed(path, error))?;
        let mut found: Vec<PathBuf> = entries.iter().map(|entry| PathBuf::from(entry.file_name())).collect();
        found.retain(|name| {
            name.extension().is_some_and(|kind| ["yaml", "yml", "json"].iter().any(|known| kind == *known))
        });
        found.sort();
        if found.is_empty() {
            return Err(Failure::new(format!(
                "{} has no file whose name ends in .yaml, .yml or .json",
                path.display()
            )));
        }
        for name in found {
            let text = beneath::read(path, &name, MAX_DOCUMENT).map_err(Failure::new)?;
            texts.push((path.join(name), text.to_string()));
        }
    }
    Ok(texts)
}

/// Returns the existing objects, and descriptions of the credentials without a name.
fn read_present(session: &Session, people: bool) -> Result<(Present, Vec<String>), Failure> {
    let refused = |doing: &'static str| move |error: ClientError| failure(doing, &error);
    let mut present = Present {
        people: if people { session.accounts().map_err(refused("list accounts"))? } else { Vec::new() },
        integrations: session.integrations().map_err(refused("list integrations"))?,
        issuers: session.issuers().map_err(refused("list issuers"))?,
        receivers: session.receivers().map_err(refused("list receivers"))?,
        credentials: Vec::new(),
    };
    let mut nameless = Vec::new();
    for item in session.list(ListFilter::default()) {
        let item = item.map_err(refused("list credentials"))?;
        match label(&item, NAME) {
            Some(_) => present.credentials.push(item),
            None => nameless.push(format!("{} {} ({})", item.namespace, item.id, item.kind)),
        }
    }
    Ok((present, nameless))
}

/// The file for secrets that are shown only once.
struct Secrets(File);

impl Secrets {
    fn create(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        file.map(Self)
            .map_err(|error| Failure::new(format!("--secrets-out: cannot create {}: {error}", path.display())))
    }

    /// Appends a line of JSON and syncs it to disk.
    fn write(&mut self, line: &Value) -> Result<(), Failure> {
        let text = Zeroizing::new(format!("{line}\n"));
        self.0.write_all(text.as_bytes())?;
        Ok(self.0.sync_all()?)
    }
}

/// Applies changes.
struct Apply<'a> {
    session: &'a Session,
    set: &'a str,
    data: BTreeMap<(String, String), Zeroizing<String>>,
    urls: BTreeMap<String, Zeroizing<String>>,
    secrets: Option<Secrets>,
}

impl Apply<'_> {
    fn make(&mut self, change: &Change) -> Result<(), Failure> {
        let refused = |error: ClientError| failure(&format!("make `{}`", printable(&change.to_string())), &error);
        match change {
            Change::Invite { email, role } => {
                let request = InviteRequest { email: email.clone(), role: role.clone() };
                let invited = self.session.invite(&request).map_err(refused)?;
                // The file is intended for enrolment codes.
                let (code, end) = (invited.enrolment_code, invited.expires_at);
                self.keep(&json!({"person": email, "enrolment_code": code, "expires_at": end}))
            }
            Change::Withdraw { id, .. } => {
                // An invitation and the account that its enrolment creates have one id.
                let people = self.session.accounts().map_err(refused)?;
                match people.iter().find(|one| one.id == *id) {
                    Some(one) if one.state == "invited" => self.session.delete_account(id).map_err(refused),
                    Some(_) => {
                        let state = Some("disabled".to_owned());
                        let request = ChangeAccountRequest { state, ..ChangeAccountRequest::default() };
                        self.session.change_account(id, &request).map(drop).map_err(refused)
                    }
                    None => Ok(()),
                }
            }
            Change::UpdatePerson { id, role, disabled, .. } => {
                let state = disabled.map(|disabled| if disabled { "disabled" } else { "active" }.to_owned());
                // A request changes either role or state. In this order, the user is never active with a role that
                // differs from the described one.
                let role = role.clone().map(|role| ChangeAccountRequest { role: Some(role), state: None });
                let state = state.map(|state| ChangeAccountRequest { role: None, state: Some(state) });
                let requests = if *disabled == Some(true) { [state, role] } else { [role, state] };
                let mut requests = requests.iter().flatten();
                requests.try_for_each(|request| self.session.change_account(id, request).map(drop)).map_err(refused)
            }
            Change::CreateIntegration(integration) => {
                let made = self.create(integration).map_err(refused)?;
                // The file is intended for tokens. Write it before anything else can fail, because the token is not
                // shown again.
                if let Some(token) = made.token {
                    self.keep(&json!({"integration": made.name, "token": token}))?;
                }
                if integration.own.disabled {
                    let change = ChangeIntegrationRequest {
                        state: Some("disabled".to_owned()),
                        ..ChangeIntegrationRequest::default()
                    };
                    self.session.change_integration(&made.id, &change).map_err(refused)?;
                }
                Ok(())
            }
            Change::UpdateIntegration { id, change, .. } => {
                self.session.change_integration(id, change).map(drop).map_err(refused)
            }
            Change::Trust { id, trust, .. } => self.session.trust(id, trust).map(drop).map_err(refused),
            Change::Distrust { id, trust, .. } => self.session.distrust(id, &trust.id).map_err(refused),
            Change::AddReceiver(receiver) => {
                let address = receiver.request.text();
                let url = self.urls.get(address).map(|url| url.to_string());
                let kind = if url.is_some() { "webhook" } else { "email" }.to_owned();
                let events = Some(receiver.request.events.clone());
                let request = AddReceiverRequest { kind, url, to: receiver.request.email.clone(), events };
                let added = self.session.add_receiver(&request).map_err(refused)?;
                if let Some(secret) = added.secret {
                    self.keep(&json!({"receiver": address, "secret": secret}))?;
                }
                if receiver.own.disabled {
                    let change = ChangeReceiverRequest { state: Some("disabled".to_owned()), events: None };
                    self.session.change_receiver(&added.receiver.id, &change).map_err(refused)?;
                }
                Ok(())
            }
            Change::UpdateReceiver { id, change, .. } => {
                self.session.change_receiver(id, change).map(drop).map_err(refused)
            }
            Change::Save(credential) => self.save(credential).map_err(|error| match is_mismatch(&error) {
                true => concurrent(&format!("{} {}", credential.request.namespace, credential.own.name)),
                false => refused(error),
            }),
            Change::Replace { id, from, credential } => self.replace(id, *from, credential, refused),
            Change::Describe { id, request, .. } => {
                let (_, tag) = self.session.show_tagged(id).map_err(refused)?;
                self.session.describe(id, request, tag.as_deref()).map(drop).map_err(refused)
            }
            Change::Delete { id, .. } => self.session.delete(id).map_err(refused),
            Change::DeleteIntegration { id, .. } => self.session.delete_integration(id).map_err(refused),
        }
    }

    fn keep(&mut self, line: &Value) -> Result<(), Failure> {
        self.secrets.as_mut().map_or(Ok(()), |secrets| secrets.write(line))
    }

    fn create(&self, integration: &Integration) -> Result<IssuedIntegration, ClientError> {
        let request = integration.request.clone();
        let token = Some(request.token.unwrap_or(false));
        let managed_by = Some(self.set.to_owned());
        self.session.create_integration(&CreateIntegrationRequest { token, managed_by, ..request })
    }

    fn data(&self, credential: &Credential) -> WireJson {
        let text = self.data.get(&identity(credential));
        SecretString::from(text.map(|text| text.as_str()).unwrap_or_default()).into()
    }

    /// Returns the idempotency key of a request. A repeated or concurrent run has the same key and creates no second
    /// credential.
    fn key(&self, doing: &str, id: &str, credential: &Credential) -> String {
        let (namespace, name) = identity(credential);
        let text = format!("{id}\0{}\0{namespace}\0{name}\0{}", self.set, credential.own.data_version);
        let digest = Sha256::digest(text.as_bytes());
        format!("{doing}-{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    fn save(&self, credential: &Credential) -> Result<(), ClientError> {
        let wanted = &credential.request;
        let request = SaveRequest {
            labels: Some(plan::labels(self.set, credential)),
            description: wanted.description.clone(),
            expires_at: wanted.expires_at.clone(),
            vend: wanted.vend.clone(),
            ..SaveRequest::new(wanted.kind.clone(), wanted.namespace.clone(), self.data(credential))
        };
        let key = self.key("apply", "", credential);
        for attempt in 1.. {
            let saved = match self.session.save(&request, Some(&format!("{key}-{attempt}"))) {
                // Other data was saved under this key. If nothing of it exists, it was deleted since.
                Err(error) if attempt < SAVE_TRIES && is_mismatch(&error) && !self.exists(credential)? => continue,
                saved => saved?,
            };
            match self.session.show(&saved.id) {
                // The response to an earlier request with this key, whose credential was deleted since. Try the next
                // key.
                Err(ClientError::Problem { problem, .. }) if problem.status == 404 && attempt < SAVE_TRIES => {}
                shown => return shown.map(drop),
            }
        }
        Ok(())
    }

    fn exists(&self, credential: &Credential) -> Result<bool, ClientError> {
        let filter = ListFilter {
            namespace: Some(credential.request.namespace.clone()),
            labels: vec![format!("{NAME}:{}", credential.own.name)],
            ..ListFilter::default()
        };
        self.session.list(filter).next().transpose().map(|found| found.is_some())
    }

    fn replace(
        &self,
        id: &str,
        from: i64,
        credential: &Credential,
        refused: impl Fn(ClientError) -> Failure,
    ) -> Result<(), Failure> {
        let (item, tag) = self.session.show_tagged(id).map_err(&refused)?;
        let now = label(&item, DATA_VERSION).and_then(|text| text.parse().ok()).unwrap_or(from);
        if now != from {
            return Err(concurrent(&place(&item)));
        }
        let request = ReplaceRequest {
            data: self.data(credential),
            expires_at: credential.request.expires_at.clone(),
            stage: None,
        };
        let options = RequestOptions {
            if_match: tag,
            idempotency_key: Some(self.key("replace", id, credential)),
            ..RequestOptions::default()
        };
        let replaced = match self.session.replace(id, &request, &options) {
            // An interrupted run sent other data under this key. The version that was read above is replaced, or none.
            Err(error) if is_mismatch(&error) => {
                self.session.replace(id, &request, &RequestOptions { idempotency_key: None, ..options })
            }
            replaced => replaced,
        };
        replaced.map(drop).map_err(refused)
    }
}

fn concurrent(place: &str) -> Failure {
    Failure::new(printable(&format!("{place} was changed concurrently: run it again")))
}

/// Whether an idempotency key was used for another request.
fn is_mismatch(error: &ClientError) -> bool {
    matches!(error, ClientError::Problem { problem, .. } if problem.code == "idempotency-mismatch")
}
