//! Port for credentials in the store.

use super::{AuditLog, CredentialContext, Find, KeyRepository, KeyedDigester, StoreError};
use crate::activation::VendRule;
use crate::command::Command;
use crate::credential::{CredentialState, CredentialType, LastCheck, Superseded, VersionList, VersionRecord};
use crate::digest::{Digest, LookupDigests};
use crate::error::Refusal;
use crate::id::{AccountId, CredentialId, KeyId, OrganizationId, VersionId};
use crate::namespace::Namespace;
use crate::sealed::{Blob, SealedCredential, SealedMetadata};
use crate::time::Timestamp;
use async_trait::async_trait;

/// An idempotency key of an account, with the request that used it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The account that used the key.
    pub account: AccountId,
    /// The key: 1 to 255 visible ASCII characters.
    pub key: String,
    /// Keyed digests of the body of that request.
    pub body: LookupDigests,
}

/// Saves one credential. Its creation time is that of the command.
#[derive(Clone, Debug)]
pub struct SaveCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Version to which the sealed parts are bound.
    pub version: i64,
    /// The list of this version.
    pub listed: VersionList,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Sealed parts. Their organization key must still be active.
    pub sealed: SealedCredential,
    /// Sealed metadata with label digests and vend rule.
    pub description: StoredMetadata,
    /// [MAC](CredentialState::code) of the row at revision 1.
    pub code: Digest,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Result of the check before the save, if any.
    pub check: Option<LastCheck>,
    /// Idempotency key, if any.
    pub idempotency: Option<Idempotency>,
    /// Maximum number of credentials of the organization.
    pub limit: i64,
}

impl SaveCredential {
    /// Returns the refusal for an exceeded credential limit.
    pub const fn limit_reached(&self) -> Refusal {
        Refusal::LimitReached { what: "credentials", limit: self.limit }
    }
}

impl StoredCredential {
    /// Returns the fields that the row's MAC covers.
    pub fn state(&self) -> CredentialState<'_> {
        CredentialState {
            kind: self.kind,
            namespace: &self.namespace,
            vend: self.vend,
            version: self.version,
            staged: self.staged,
            highest: self.highest,
            listed: &self.listed,
            revision: self.revision,
            metadata_revision: self.metadata.as_ref().map(|metadata| metadata.revision),
        }
    }

    /// Returns the context to which the sealed parts of a version are bound.
    pub fn context(&self, organization: OrganizationId, version: i64) -> CredentialContext {
        CredentialContext { organization, credential: self.id, version, id: self.listed.id(version) }
    }

    /// Returns whether the row's MAC verifies.
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester, organization: OrganizationId) -> bool {
        self.state().fits(digester, (organization, self.id), &self.code)
    }
}

/// Sealed metadata of a credential, with the label digests by which a store finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMetadata {
    /// Sealed labels, description and declared expiries. `None` if there are none.
    pub metadata: Option<SealedMetadata>,
    /// A lookup digest of each label, in any order.
    pub labels: Vec<Digest>,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
}

/// A stored credential without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its version.
    pub version: i64,
    /// Time of the save.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Number of changes by clients, including the save. Every [`ChangeCredential`] names the revision that it is based
    /// on.
    pub revision: i64,
    /// The staged version, if any.
    pub staged: Option<i64>,
    /// Highest version number ever assigned, including destroyed versions. No number is assigned twice.
    pub highest: i64,
    /// The versions that exist.
    pub listed: VersionList,
    /// The version that was current before, unless it was destroyed. It may be past its retention. Not authenticated,
    /// because only lists show it.
    pub previous: Option<PreviousVersion>,
    /// Expiry: the earlier of the declared expiry and the one in the data. Not authenticated, because it only
    /// determines when to warn.
    pub expires_at: Option<Timestamp>,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// [MAC](CredentialState::code) of the row.
    pub code: Digest,
    /// Sealed labels, description and declared expiries.
    pub metadata: Option<SealedMetadata>,
    /// Result of the last check of the current version.
    pub check: Option<LastCheck>,
    /// Time of the last activation, truncated to the minute.
    pub last_activated_at: Option<Timestamp>,
    /// Organization key that sealed the information.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// The version of a credential that was current before the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousVersion {
    /// Version number.
    pub number: i64,
    /// Time until which it is kept.
    pub until: Timestamp,
}

/// A staged or previous version of a credential, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Version number.
    pub number: i64,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which it stopped being the current version. `None` if it is staged.
    pub superseded: Option<Superseded>,
    /// Result of the last check.
    pub check: Option<LastCheck>,
    /// Organization key that sealed the information.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// A credential with its other versions, read in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersions {
    /// The credential, with its current version.
    pub current: StoredCredential,
    /// Creation time of the current version.
    pub created_at: Timestamp,
    /// The other versions, ordered by number.
    pub others: Vec<StoredVersion>,
}

/// Changes a credential unless another client has changed it since it was read.
#[derive(Clone, Debug)]
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
    /// [MAC](CredentialState::code) of the row after the change.
    pub code: Digest,
    /// Expiry after the change.
    pub expires_at: Option<Timestamp>,
}

/// Change to a credential. Version numbers refer to the revision that was read.
#[derive(Clone, Debug)]
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

impl StoredVersions {
    /// Returns whether a version other than the current one exists and is not past its retention.
    pub fn is_kept(&self, number: i64, now: Timestamp) -> bool {
        let kept = |version: &StoredVersion| version.superseded.is_none_or(|superseded| superseded.is_kept(now));
        self.others.iter().any(|version| version.number == number && kept(version))
    }
}

/// A version to store.
#[derive(Clone, Debug)]
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

/// Port for credentials. Every method checks authorization in its own transaction and returns [`StoreError::Denied`] if
/// the principal may no longer act.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// Saves a credential and returns its ID. If the same request was already carried out, returns the ID that it
    /// created.
    ///
    /// # Errors
    /// - [`Refusal::IdempotencyMismatch`]: the key was used for another request.
    /// - [`Refusal::Contended`]: the organization key is no longer active. Seal again.
    /// - [`SaveCredential::limit_reached`]: the organization has the maximum number of credentials.
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError>;

    /// Reads a credential of the principal's organization with its other versions, immediately before
    /// [`CredentialRepository::change_credential`]. A store may read from its writer connection if that is cheaper.
    async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError>;

    /// Changes a credential of the principal's organization and returns the number of the affected version. If the same
    /// request was already carried out, returns the number from that time.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`]: the credential does not exist.
    /// - [`Refusal::IdempotencyMismatch`]: the key was used for another request.
    /// - [`Refusal::Changed`]: the credential no longer has the revision.
    /// - [`Refusal::Contended`]: the organization key is no longer active. Seal again.
    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError>;
}

/// Ports that the operations on a vault require of a store.
pub trait CredentialStore: CredentialRepository + KeyRepository + AuditLog {}

impl<S: CredentialRepository + KeyRepository + AuditLog + ?Sized> CredentialStore for S {}
