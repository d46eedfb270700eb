//! Checks of the signing keys of keyless storage access.

use super::{Check, CheckName, Outcome};
use crate::settings::Settings;
use vault_core::federation::FederationKeyState;
use vault_embed::OpenVault;

/// Age of a current key from which it should be replaced, in days.
const OLD_DAYS: i64 = 180;

/// Checks whether a current signing key exists. Returns `None` without a federation issuer.
pub(super) async fn keys(settings: &Settings, vault: &OpenVault) -> Option<Check> {
    const CHECK: CheckName = CheckName::Federation;
    let issuer = settings.server.federation_issuer.as_ref()?;
    let status = match vault.federation().status(issuer).await {
        Ok(status) => status,
        Err(error) => {
            let found = format!("the signing keys cannot be read: {error}");
            let remedy = "See the log of the server and of the database.";
            return Some(Check::other(CHECK, Outcome::Failed, found, remedy));
        }
    };
    if let Some(id) = status.damaged.first() {
        let found = format!(
            "document {id} in table entities is damaged or was put back outside the service: its keys are not used"
        );
        let remedy = "Find out who can write to the database. `orgvault federation key add` replaces the document.";
        return Some(Check::other(CHECK, Outcome::Failed, found, remedy));
    }
    let Some(current) = status.keys.iter().find(|key| key.state == FederationKeyState::Current) else {
        let remedy = "Exchanges fail. Run `orgvault federation status`, which shows the next step.";
        return Some(Check::other(CHECK, Outcome::Failed, format!("{issuer} has no current signing key"), remedy));
    };
    let kid = current.kid();
    let days = vault.ports().environment.now().millis_since(current.since()) / 86_400_000;
    let found = format!("signing key {kid} of {issuer} is current since {days} days");
    if days > OLD_DAYS {
        let remedy = "Create a key with `openssl genpkey`, and add it with `orgvault federation key add --file PEM`.";
        return Some(Check::other(CHECK, Outcome::Warning, found, remedy));
    }
    Some(match status.checks.of(kid).and_then(|checked| checked.failure) {
        Some(failure) => {
            Check::other(CHECK, Outcome::Warning, format!("{found}; {failure}"), failure.explain(issuer, Some(kid)))
        }
        None => Check::passed(CHECK, found),
    })
}
