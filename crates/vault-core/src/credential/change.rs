//! Changes of a credential: its versions and its description.

use super::idempotency::{answered, earlier_request};
use super::save::is_under_one_key;
use super::{LastCheck, Superseded, VersionList, VersionRecord};
use crate::audit::{AuditAction, AuditChange, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId, OrganizationId, VersionId};
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::port::{Idempotency, StoredCredential, StoredMetadata};
use crate::sealed::{SealedCredential, SealedMetadata};
use crate::time::Timestamp;
use futures_util::try_join;

/// Changes a credential unless another client has changed it since it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision that was read. The change increments it.
    pub revision: i64,
    /// The change.
    pub change: CredentialChange,
    /// The versions that exist after the change.
    pub listed: VersionList,
    /// New metadata. `None` leaves it unchanged.
    pub description: Option<StoredMetadata>,
    /// [MAC](super::CredentialState::code) of the row after the change.
    pub code: Digest,
    /// Expiry after the change.
    pub expires_at: Option<Timestamp>,
    /// Action of the audit entry.
    pub action: AuditAction,
    /// Changes in the audit entry.
    pub changes: Vec<AuditChange>,
}

/// Change to a credential. Version numbers refer to the revision that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialChange {
    /// Makes a new version current and keeps the old one as a previous version.
    Replace {
        /// The new version, [`StoredCredential::highest`] plus one.
        version: NewVersion,
        /// Time at which the previously current version is destroyed.
        destroy_at: Timestamp,
    },
    /// Stages a new version and replaces the staged one, if any.
    Stage(NewVersion),
    /// Makes another version current and keeps the old one as a previous version.
    Promote {
        /// Number of the version to promote.
        number: i64,
        /// Time at which the previously current version is destroyed.
        destroy_at: Timestamp,
        /// Numbers of the versions to destroy.
        destroyed: Vec<i64>,
    },
    /// Destroys a version that is not current, including its wrapped data key.
    Destroy(i64),
    /// Changes no version.
    Describe,
}

impl CredentialChange {
    /// Returns the highest version number after the change.
    pub const fn highest_after(&self, highest: i64) -> i64 {
        match self {
            Self::Replace { version, .. } | Self::Stage(version) => version.number,
            Self::Promote { .. } | Self::Destroy(_) | Self::Describe => highest,
        }
    }

    /// Returns the numbers of the current and the staged version after the change.
    pub fn versions_after(&self, current: i64, staged: Option<i64>) -> (i64, Option<i64>) {
        match self {
            Self::Replace { version, .. } => (version.number, staged),
            Self::Stage(version) => (current, Some(version.number)),
            Self::Promote { number, .. } => (*number, staged.filter(|staged| staged != number)),
            Self::Destroy(number) => (current, staged.filter(|staged| staged != number)),
            Self::Describe => (current, staged),
        }
    }

    /// Returns the versions that exist after the change.
    pub fn listed_after(&self, current: i64, listed: &VersionList) -> VersionList {
        let (added, superseded, destroyed): (_, _, &[i64]) = match self {
            Self::Replace { version, destroy_at } => (Some(version), Some(*destroy_at), &version.destroyed),
            Self::Stage(version) => (Some(version), None, &version.destroyed),
            Self::Promote { destroy_at, destroyed, .. } => (None, Some(*destroy_at), destroyed),
            Self::Destroy(number) => (None, None, std::slice::from_ref(number)),
            Self::Describe => (None, None, &[]),
        };
        let promoted = if let Self::Promote { number, .. } = self { Some(*number) } else { None };
        let remaining = listed.records().filter(|record| !destroyed.contains(&record.number)).map(|record| {
            let destroy_at = match record.number {
                number if number == current => superseded,
                number if Some(number) == promoted => None,
                _ => record.destroy_at,
            };
            VersionRecord { destroy_at, ..record }
        });
        let added = added.map(|version| VersionRecord { number: version.number, id: version.id, destroy_at: None });
        remaining.chain(added).collect()
    }
}

/// A version to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVersion {
    /// Version number, to which the sealed parts are bound.
    pub number: i64,
    /// ID of the version, to which the sealed parts are bound too.
    pub id: VersionId,
    /// Sealed parts. Their organization key must still be active.
    pub sealed: SealedCredential,
    /// Result of the check before it is stored, if any.
    pub check: Option<LastCheck>,
    /// Idempotency key, if any.
    pub idempotency: Option<Idempotency>,
    /// Numbers of the versions to destroy, including the current one if it is not kept.
    pub destroyed: Vec<i64>,
}

/// Effects of a change on the rows of a credential.
#[derive(Clone, Copy, Debug)]
pub struct ChangeEffects<'a> {
    /// The change, with the new description and expiry.
    pub change: &'a ChangeCredential,
    /// The row before the change.
    pub before: &'a StoredCredential,
    /// Time of the change.
    pub at: Timestamp,
    /// Revision after the change.
    pub revision: i64,
    /// Highest version number after the change.
    pub highest: i64,
    /// Staged version after the change.
    pub staged: Option<i64>,
    /// Effect on the affected version.
    pub version: VersionEffect<'a>,
    /// Versions to destroy afterwards, which may include the previously current one.
    pub destroyed: &'a [i64],
}

/// Effect of a change on a version.
#[derive(Clone, Copy, Debug)]
pub enum VersionEffect<'a> {
    /// The current version is unchanged.
    Keep,
    /// This new version is stored in addition to the current one.
    Stage(&'a NewVersion),
    /// The current version is kept as a previous one, and replaced by this new one.
    Replace(&'a NewVersion, Superseded),
    /// The current version is kept as a previous one, and replaced by the stored version with this number.
    Promote(i64, Superseded),
}

impl ChangeCredential {
    /// Returns the new version, if any.
    pub const fn new_version(&self) -> Option<&NewVersion> {
        match &self.change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => Some(version),
            CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => None,
        }
    }

    /// Returns the organization key that sealed its new parts, or `None` if it has none.
    pub fn sealing_key(&self) -> Option<KeyId> {
        self.new_version().map(|new| new.sealed.key).or(self.new_metadata().map(|metadata| metadata.key))
    }

    /// Returns the metadata if it is new. Metadata sealed for an earlier revision is stored again unchanged.
    fn new_metadata(&self) -> Option<&SealedMetadata> {
        self.metadata().filter(|metadata| metadata.revision > self.revision)
    }

    fn metadata(&self) -> Option<&SealedMetadata> {
        self.description.as_ref().and_then(|description| description.metadata.as_ref())
    }

    /// Returns whether the parts can be stored: their key is active, and metadata that is stored again unchanged was not moved
    /// to another key after it was read.
    fn is_under_active_key(&self, key_is_active: bool, before: &StoredCredential) -> bool {
        let known = before.metadata.as_ref().map(|metadata| metadata.key);
        let is_current = |metadata: &SealedMetadata| metadata.revision > before.revision || known == Some(metadata.key);
        key_is_active
            && self.metadata().is_none_or(is_current)
            && self.sealing_key().is_none_or(|key| is_under_one_key(key, self.new_metadata()))
    }

    fn effects<'a>(&'a self, before: &'a StoredCredential, at: Timestamp) -> ChangeEffects<'a> {
        let (version, destroyed): (_, &[i64]) = match &self.change {
            CredentialChange::Replace { version, destroy_at } => {
                (VersionEffect::Replace(version, Superseded { at, destroy_at: *destroy_at }), &version.destroyed)
            }
            CredentialChange::Stage(version) => (VersionEffect::Stage(version), &version.destroyed),
            CredentialChange::Promote { number, destroy_at, destroyed } => {
                (VersionEffect::Promote(*number, Superseded { at, destroy_at: *destroy_at }), destroyed)
            }
            CredentialChange::Destroy(number) => (VersionEffect::Keep, std::slice::from_ref(number)),
            CredentialChange::Describe => (VersionEffect::Keep, &[]),
        };
        let (_, staged) = self.change.versions_after(before.version, before.staged);
        let (revision, highest) = (before.revision + 1, self.change.highest_after(before.highest));
        ChangeEffects { change: self, before, at, revision, highest, staged, version, destroyed }
    }
}

impl Operation for ChangeCredential {
    /// Number of the affected version, or of the one that an earlier request with the same idempotency key created.
    type Outcome = i64;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    /// Refused as [`Refusal::Contended`] if the organization key is no longer active: seal again.
    async fn run(&self, unit: &Unit<'_>) -> Result<i64, Failure> {
        let (rows, organization, id) = (unit.rows(), self.organization, self.id);
        let idempotency = self.new_version().and_then(|version| version.idempotency.as_ref());
        let key_is_active = async {
            match self.sealing_key() {
                Some(key) => rows.is_active_key(organization, key).await,
                None => Ok(true),
            }
        };
        let ((), earlier, key_is_active, before) = try_join!(
            unit.authorize(),
            earlier_request(unit, organization, idempotency),
            flat(key_is_active),
            flat(rows.credential(organization, id)),
        )?;
        if let Some((_, number)) = answered(unit, earlier, idempotency)? {
            return Ok(number);
        }
        let before = before.ok_or(Refusal::NotFound)?;
        if before.revision != self.revision {
            return Err(Refusal::Changed.into());
        }
        if !self.is_under_active_key(key_is_active, &before) {
            return Err(Refusal::Contended.into());
        }
        let effects = self.effects(&before, unit.now());
        let changed = Subject::Credential(id).left(RecordedRow::Credential, RowState::Revision(effects.revision));
        let changed = changed.within(before.namespace.clone()).changing(self.changes.clone());
        unit.write_and_record(rows.change_credential(&effects), Some(organization), self.action, changed).await?;
        Ok(match &self.change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => version.number,
            CredentialChange::Promote { number, .. } | CredentialChange::Destroy(number) => *number,
            CredentialChange::Describe => before.version,
        })
    }
}
