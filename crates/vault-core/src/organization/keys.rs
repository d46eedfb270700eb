//! Rotation of an organization's key. What is sealed with it is the cards and data keys of credentials.
//!
//! Each seal uses a random 96-bit nonce, and the probability that two are equal limits a key to 2^32 seals (NIST SP 800-38D,
//! section 8.3). A key is replaced long before.

use super::Organization;
use crate::audit::{Actor, AuditAction, Subject};
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::{Event, SealError};

/// Number of uses from which a key is replaced.
pub const KEY_REPLACED_AT: i64 = 1 << 24;

impl Unit<'_> {
    /// Gives an organization a new active key. Nothing is sealed with the previous one afterwards.
    async fn replace_key(&self, before: &crate::entity::Opened<Organization>, actor: Actor) -> Result<KeyId, Failure> {
        let next = self.credentials().new_key(before.id, self.now()).map_err(Failure::Seal)?;
        let id = next.id;
        let after = Organization { keys: before.keys.with_next(next), ..Organization::clone(before) };
        self.replace(before, &after).await?;
        self.rows().reset_key_uses(before.id).await?;
        let subject = Subject::Organization(before.id).into();
        self.record_as(actor, Some(before.id), AuditAction::OrganizationKeyReplaced, subject).await?;
        Ok(id)
    }
}

/// Starts the rotation of an organization's key: creates a new one, unless an earlier key is still retiring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotateOrganization(pub OrganizationId);

/// A started rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedRotation {
    /// The active key.
    pub key: KeyId,
    /// Whether it was created now.
    pub is_new: bool,
}

impl Operation for RotateOrganization {
    type Outcome = StartedRotation;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<StartedRotation, Failure> {
        unit.authorize().await?;
        let before = unit.organization(self.0).await?.ok_or(Refusal::NoOrganization)?;
        let is_new = before.keys.retiring.is_empty();
        let key = match is_new {
            true => unit.replace_key(&before, Actor::from(unit.principal())).await?,
            false => before.keys.active.id,
        };
        Ok(StartedRotation { key, is_new })
    }
}

/// Counts the credentials that a key of an organization seals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountSealed(pub OrganizationId, pub KeyId);

impl Operation for CountSealed {
    type Outcome = i64;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<i64, Failure> {
        unit.authorize().await?;
        Ok(unit.rows().count_sealed(self.0, self.1).await?)
    }
}

/// Returns the number of uses of the active key of an organization that are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadKeyUses(pub OrganizationId);

impl Operation for ReadKeyUses {
    type Outcome = i64;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<i64, Failure> {
        unit.authorize().await?;
        Ok(unit.rows().key_uses(self.0).await?)
    }
}

/// One step of a rotation: seals credentials with the active key that another one seals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveCredentials {
    /// The organization.
    pub organization: OrganizationId,
    /// Credential after which the step starts.
    pub after: Option<CredentialId>,
    /// Maximum number of credentials.
    pub limit: usize,
}

/// Result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedCredentials {
    /// Last credential of the step. `None` if none remained.
    pub last: Option<CredentialId>,
    /// Number of credentials that were moved.
    pub moved: usize,
    /// Credentials that do not open, with their keys. They stay as they are.
    pub damaged: Vec<(CredentialId, KeyId)>,
}

impl Operation for MoveCredentials {
    type Outcome = MovedCredentials;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<MovedCredentials, Failure> {
        let (rows, organization) = (unit.rows(), self.organization);
        unit.authorize().await?;
        let owner = unit.sealing_owner(organization).await?;
        let mut step = MovedCredentials::default();
        for credential in rows.sealed_except(organization, owner.keys.active.id, self.after, self.limit).await? {
            step.last = Some(credential.id);
            match unit.credentials().rewrap(organization, &owner.keys, &credential) {
                Ok(rewrapped) => {
                    // A data key is wrapped with another key than the one that seals the card.
                    unit.count_uses(&owner, i64::try_from(rewrapped.data.len().max(1)).unwrap_or(i64::MAX));
                    rows.reseal_credential(organization, &rewrapped).await?;
                    step.moved += 1;
                }
                Err(error @ (SealError::Integrity { .. } | SealError::UnknownKey { .. })) => {
                    unit.report_damage(&error);
                    step.damaged.push((credential.id, credential.key));
                }
                Err(error) => return Err(Failure::Seal(error)),
            }
        }
        unit.commit_without_entry();
        Ok(step)
    }
}

/// Destroys a retiring key. Only after a pass of [`MoveCredentials`] over all credentials, begun when the key was retiring, has found
/// none under it: since then, nothing was sealed with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestroyOrganizationKey(pub OrganizationId, pub KeyId);

impl Operation for DestroyOrganizationKey {
    /// `false` if it is not retiring: another process destroyed it.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let Self(organization, key) = *self;
        unit.authorize().await?;
        let before = unit.organization(organization).await?.ok_or(Refusal::NoOrganization)?;
        if !before.keys.retiring.iter().any(|retiring| retiring.id == key) {
            return Ok(false);
        }
        let after = Organization { keys: before.keys.without(key), ..Organization::clone(&before) };
        unit.replace(&before, &after).await?;
        let subject = Subject::Organization(organization).into();
        unit.record(Some(organization), AuditAction::OrganizationKeyDestroyed, subject).await?;
        Ok(true)
    }
}

/// Adds uses of a key to those that are stored, and replaces the key if they are too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountKeyUses {
    /// The organization.
    pub organization: OrganizationId,
    /// The key.
    pub key: KeyId,
    /// Number of uses.
    pub uses: i64,
    /// Number of uses from which the key is replaced.
    pub replaced_at: i64,
}

impl Operation for CountKeyUses {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let Some(owner) = unit.organization(self.organization).await? else { return Ok(()) };
        if owner.keys.active.id != self.key {
            return Ok(());
        }
        unit.commit_without_entry();
        unit.rows().add_key_uses(self.organization, self.uses).await?;
        if unit.rows().key_uses(self.organization).await? >= self.replaced_at {
            unit.replace_key(&owner, Actor::System).await?;
            unit.report(Event::OrganizationKeyReplaced(self.key));
        }
        Ok(())
    }
}
