//! Instructions for the provider trust of a keyless credential.

use super::Vault;
use crate::activation::VendRule;
use crate::credential::{CredentialData, CredentialType, NO_SECRET_TO_ISSUE};
use crate::error::{Error, Refusal};
use crate::federation::TrustInstructions;
use crate::field::{FieldCode, FieldError};
use crate::id::CredentialId;
use crate::principal::Principal;
use crate::role::Action;

const OFF: &str = "this server has no federation issuer. Its operator must set --federation-issuer";
const NO_VERIFY: &str = "a keyless credential is checked after the save. Save it, set up its trust, then run \
                         `orgvault credential check ID`";

impl Vault {
    /// Returns what the provider of a keyless credential must trust, and how to configure it.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`], also for a credential of another organization.
    /// - [`Refusal::NotKeyless`], [`Refusal::FederationOff`] or [`Refusal::Damaged`].
    pub async fn trust(&self, principal: &Principal, id: CredentialId) -> Result<TrustInstructions, Error> {
        let organization = principal.member(Action::List)?;
        let shown = self.show(principal, id).await?;
        if !shown.kind.is_keyless() {
            return Err(Refusal::NotKeyless(id).into());
        }
        let issuer = self.federation.as_ref().ok_or(Refusal::FederationOff)?;
        let damaged = || Refusal::Damaged { table: "credentials", id: id.to_string() };
        let information = shown.information.ok_or_else(damaged)?;
        // Lists show all fields of a keyless credential, so nothing has to be decrypted here.
        let data = CredentialData::from_information(shown.kind, &information).ok_or_else(damaged)?;
        Ok(issuer.instructions(&data, organization, id).ok_or_else(damaged)?)
    }

    /// Refuses a save of a keyless credential if the feature is off, and requests that require a saved secret.
    pub(super) fn check_keyless_save(&self, kind: CredentialType, vend: VendRule, verify: bool) -> Result<(), Error> {
        if !kind.is_keyless() {
            return Ok(());
        }
        let rules = [
            (self.federation.is_none(), "/type", OFF),
            (vend == VendRule::Any, "/vend", NO_SECRET_TO_ISSUE),
            // The subject contains the credential's ID, and only the activation process can sign.
            (verify, "/verify", NO_VERIFY),
        ];
        let violated = rules.into_iter().filter(|(violated, ..)| *violated);
        let violations: Vec<_> =
            violated.map(|(_, pointer, detail)| FieldError::new(pointer, FieldCode::NotAllowed, detail)).collect();
        if violations.is_empty() { Ok(()) } else { Err(Error::Invalid(violations)) }
    }
}
