//! Promotion and destruction of versions.

use super::change::{Change, ChangedVersion};
use super::{CredentialRef, Vault};
use crate::activation::VendRule;
use crate::audit::AuditAction;
use crate::credential::Card;
use crate::error::{Error, Refusal};
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

impl Vault {
    /// Makes the version `number` the current one. Promoting the current version changes nothing.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`], also for a credential of another organization.
    /// - [`Refusal::NoSuchVersion`], [`Refusal::NoShortForm`], [`Refusal::Changed`] or [`Refusal::Contended`].
    pub async fn promote(
        &self,
        principal: &Principal,
        credential: CredentialRef,
        number: i64,
    ) -> Result<ChangedVersion, Error> {
        let organization = principal.member(Action::Save)?;
        let decide = |card: &Card, now: Timestamp| {
            if card.current.number == number {
                return Ok((number, card.clone()));
            }
            let promoted = card.promoted(number, self.version_limits, now)?;
            if card.vend == VendRule::Short {
                promoted.current.information.allows_short(card.kind).map_err(Refusal::NoShortForm)?;
            }
            Ok((number, promoted))
        };
        let change = Change { credential, action: AuditAction::CredentialPromoted, new: None };
        self.change(principal, organization, change, decide).await
    }

    /// Destroys the staged or a previous version, including its wrapped data key.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`], also for a credential of another organization.
    /// - [`Refusal::NoSuchVersion`], [`Refusal::CurrentVersion`], [`Refusal::Changed`] or [`Refusal::Contended`].
    pub async fn destroy_version(
        &self,
        principal: &Principal,
        credential: CredentialRef,
        number: i64,
    ) -> Result<(), Error> {
        let organization = principal.member(Action::Save)?;
        let change = Change { credential, action: AuditAction::CredentialVersionDestroyed, new: None };
        let decide = |card: &Card, now: Timestamp| Ok((number, card.without(number, now)?));
        self.change(principal, organization, change, decide).await?;
        Ok(())
    }
}
