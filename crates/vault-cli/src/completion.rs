//! Values that shell completion offers: the user's profiles and the server's credentials.

use crate::client::login::{Login, Profile};
use crate::hardening;
use clap::builder::StyledStr;
use clap_complete::CompletionCandidate;
use std::collections::BTreeSet;
use std::time::Duration;
use vault_client::{CredentialItem, ListFilter};
use vault_core::credential::{CredentialType, HealthState};

/// Time limit of the server's response, because the user is waiting.
const DEADLINE: Duration = Duration::from_secs(2);
/// Maximum number of offered credentials.
const OFFERED: u32 = 200;

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(StyledStr::from(help.to_owned())))
}

pub(crate) fn types() -> Vec<CompletionCandidate> {
    CredentialType::ALL.map(|kind| CompletionCandidate::new(kind.as_str())).into()
}

/// Returns the health states of credentials.
pub fn health() -> Vec<CompletionCandidate> {
    HealthState::ALL.map(|state| CompletionCandidate::new(state.as_str())).into()
}

/// Returns the vending rules of credentials.
pub(crate) fn vend() -> Vec<CompletionCandidate> {
    ["any", "short"].map(CompletionCandidate::new).into()
}

/// Returns the profiles of this user.
pub fn profiles() -> Vec<CompletionCandidate> {
    let kept = Profile::all().unwrap_or_default().into_iter();
    let logins = kept.filter_map(|profile| Some((Login::read(&profile).ok()?, profile)));
    logins
        .map(|((login, _), profile)| candidate(profile.as_str(), &format!("{} at {}", login.email, login.url)))
        .collect()
}

/// Returns the credentials of the organization that this user is logged in to.
pub fn credentials() -> Vec<CompletionCandidate> {
    let shown = |item: &CredentialItem| candidate(&item.id, &format!("{} {}", item.kind, item.namespace));
    saved().iter().map(shown).collect()
}

/// Returns the namespaces of these credentials.
pub fn namespaces() -> Vec<CompletionCandidate> {
    let names: BTreeSet<String> = saved().into_iter().map(|item| item.namespace).collect();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the newest credentials. Empty if the user is not logged in, or the server does not respond in time.
fn saved() -> Vec<CredentialItem> {
    // Apply the hardening first, as for all commands that read a token.
    let asked = || {
        hardening::apply().ok()?;
        let (login, session) = Login::read(&named_profile()?).ok()?;
        let session = login.client(Some(DEADLINE)).ok()?.resume(session.access_token.into_secret());
        session.page(&ListFilter { page_size: Some(OFFERED), ..ListFilter::default() }, None).ok()
    };
    asked().map(|page| page.credentials).unwrap_or_default()
}

/// Returns the profile in the incomplete command line.
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
