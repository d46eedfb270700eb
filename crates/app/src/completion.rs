//! Completion of the command line by a shell, which asks this program: so it knows the logins of the user and the credentials
//! of the server.

use crate::cli;
use crate::client::login::{Login, Profile};
use crate::failure::Failure;
use crate::hardening;
use clap::builder::StyledStr;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate, Shell};
use std::collections::BTreeSet;
use std::time::Duration;
use vault_client::{CredentialItem, ListFilter};
use vault_core::credential::{CredentialType, HealthState};

/// The variable by which a shell asks.
const VARIABLE: &str = "ORGVAULT_COMPLETE";
/// How long the server may take while somebody waits for a completion.
const DEADLINE: Duration = Duration::from_secs(2);
/// How many credentials are offered.
const OFFERED: u32 = 200;

/// Answers a shell that asks for a completion, and ends the process then.
pub(crate) fn answer() {
    CompleteEnv::with_factory(cli::command).var(VARIABLE).bin("orgvault").completer("orgvault").complete();
}

/// What makes `shell` ask this program.
pub(crate) fn script(shell: Shell) -> Result<String, Failure> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or_else(|| Failure::new(format!("no completion for {name}")))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "orgvault", "orgvault", "orgvault", &mut script)?;
    Ok(String::from_utf8(script)?)
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(StyledStr::from(help.to_owned())))
}

/// The types of credentials.
pub(crate) fn types() -> Vec<CompletionCandidate> {
    CredentialType::ALL.map(|kind| CompletionCandidate::new(kind.as_str())).into()
}

/// The states of credentials.
pub(crate) fn health() -> Vec<CompletionCandidate> {
    HealthState::ALL.map(|state| CompletionCandidate::new(state.as_str())).into()
}

/// The rules of how credentials are issued.
pub(crate) fn vend() -> Vec<CompletionCandidate> {
    ["any", "short"].map(CompletionCandidate::new).into()
}

/// The profiles of this user.
pub(crate) fn profiles() -> Vec<CompletionCandidate> {
    let kept = Profile::all().unwrap_or_default().into_iter();
    let logins = kept.filter_map(|profile| Some((Login::read(&profile).ok()?, profile)));
    logins.map(|(login, profile)| candidate(profile.as_str(), &format!("{} at {}", login.email, login.url))).collect()
}

/// The credentials of the organization that this user is logged in to.
pub(crate) fn credentials() -> Vec<CompletionCandidate> {
    let shown = |item: &CredentialItem| candidate(&item.id, &format!("{} {}", item.kind, item.namespace));
    saved().iter().map(shown).collect()
}

/// The namespaces of these credentials.
pub(crate) fn namespaces() -> Vec<CompletionCandidate> {
    let names: BTreeSet<String> = saved().into_iter().map(|item| item.namespace).collect();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The newest credentials; none if this user is not logged in, or the server does not answer in time.
fn saved() -> Vec<CredentialItem> {
    // A token is read here as in any other command.
    let asked = || {
        hardening::apply().ok()?;
        let session = Login::read(&named_profile()?).ok()?.session_within(DEADLINE).ok()?;
        session.page(&ListFilter { page_size: Some(OFFERED), ..ListFilter::default() }, None).ok()
    };
    asked().map(|page| page.credentials).unwrap_or_default()
}

/// The profile that the unfinished command line names.
fn named_profile() -> Option<Profile> {
    let words: Vec<String> = std::env::args().collect();
    let written = words.iter().enumerate().rev().find_map(|(at, word)| match word.strip_prefix("--profile") {
        Some("") => words.get(at + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    let named = written.or_else(|| std::env::var("ORGVAULT_PROFILE").ok());
    named.map_or_else(|| Some(Profile::default()), |name| name.parse().ok())
}
