//! Promotion of staged and previous versions, and destruction of versions.

use super::change::{ChangedVersion, Decided, Read};
use super::{CredentialRef, Vault};
use crate::activation::VendRule;
use crate::audit::AuditAction;
use crate::credential::CredentialChange;
use crate::error::{Error, Refusal};
use crate::port::{SealedInformation, StoredVersion, StoredVersions};
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
        let decide = |read: Read| async move {
            let (versions, now) = (&read.versions, self.environment.now());
            let vend = versions.current.vend;
            if versions.current.version == number {
                let (change, metadata) = (CredentialChange::Describe, read.metadata.clone());
                return Ok(Decided { change, metadata, vend, data_expires_at: None }); // which writes nothing
            }
            let promoted = kept(versions, number, now).ok_or(Refusal::NoSuchVersion)?;
            let context = versions.current.context(organization, number);
            let sealed = SealedInformation { context, key: promoted.key, blob: &promoted.information };
            let information = self.open_one(sealed, read.reading).await?;
            if vend == VendRule::Short {
                information.allows_short(versions.current.kind).map_err(Refusal::NoShortForm)?;
            }
            let superseded = self.version_limits.supersede(now);
            let mut left = versions.clone();
            left.others.retain(|version| version.number != number);
            left.current.staged = left.current.staged.filter(|_| promoted.superseded.is_some());
            let destroyed = self.destroyed_by_replacing(&left, superseded, now);
            let mut metadata = read.metadata.clone();
            metadata.forget(&destroyed);
            let change = CredentialChange::Promote { number, destroy_at: superseded.destroy_at, destroyed };
            Ok(Decided { change, metadata, vend, data_expires_at: information.expires_at() })
        };
        self.change(principal, organization, credential, AuditAction::CredentialPromoted, decide).await
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
        let decide = |read: Read| async move {
            let versions = &read.versions;
            if versions.current.version == number {
                return Err(Refusal::CurrentVersion.into());
            }
            kept(versions, number, self.environment.now()).ok_or(Refusal::NoSuchVersion)?;
            let mut metadata = read.metadata.clone();
            metadata.forget(&[number]);
            Ok(Decided {
                change: CredentialChange::Destroy(number),
                metadata,
                vend: versions.current.vend,
                data_expires_at: self.data_expires_at(organization, &versions.current, read.reading).await?,
            })
        };
        let action = AuditAction::CredentialVersionDestroyed;
        self.change(principal, organization, credential, action, decide).await?;
        Ok(())
    }
}

/// Returns the version `number`, unless it is current or its retention has ended.
fn kept(versions: &StoredVersions, number: i64, now: Timestamp) -> Option<&StoredVersion> {
    let kept = versions.current.listed.is_kept(number, now);
    versions.others.iter().find(|version| version.number == number).filter(|_| kept)
}
