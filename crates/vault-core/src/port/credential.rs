//! Port for credentials in the store.

use super::{AuditLog, CredentialContext, Find, KeyRepository, KeyedDigester, List, StoreError};
use crate::activation::{Purpose, VendRule, VendedForm};
use crate::command::Command;
use crate::credential::{
    CredentialState, CredentialType, Health, HealthState, LastCheck, Superseded, VersionList, VersionRecord,
};
use crate::digest::{Digest, LookupDigests};
use crate::error::Refusal;
use crate::id::{AccountId, ActivationId, CredentialId, IntegrationId, KeyId, OrganizationId, VersionId};
use crate::integration::IntegrationName;
use crate::namespace::Namespace;
use crate::principal::Principal;
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

/// Maximum number of rows that a filtered list reads for one page. With this bound, the index entries of several labels
/// fit together into a reader's cache. The API promises clients at most 10,000.
pub const LIST_WINDOW: usize = 4_000;

/// Reads a page of a list, newest first. With [`ListCredentials::expires_before`], the list is ordered by expiry, then
/// by ID.
#[derive(Clone, Debug)]
pub struct ListCredentials {
    /// Principal that makes the request.
    pub principal: Principal,
    /// Organization of the principal.
    pub organization: OrganizationId,
    /// Current time.
    pub now: Timestamp,
    /// Filter: only credentials of this namespace.
    pub namespace: Option<Namespace>,
    /// Filter: only credentials of this type.
    pub kind: Option<CredentialType>,
    /// Filter: only credentials with all of these labels.
    pub labels: Vec<LookupDigests>,
    /// Filter: only credentials in this state.
    pub health: Option<HealthState>,
    /// Filter: only credentials that expire before this time.
    pub expires_before: Option<Timestamp>,
    /// Position after which the page starts.
    pub after: Option<ListPosition>,
    /// Maximum number of results.
    pub limit: usize,
}

impl ListCredentials {
    /// Returns whether the list contains this credential, for stores that filter in memory.
    pub fn matches(&self, row: &StoredCredential, labels: &[Digest]) -> bool {
        let health = || Health::at(self.now, row.expires_at, row.check).state;
        self.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
            && self.kind.is_none_or(|kind| row.kind == kind)
            && self.labels.iter().all(|label| label.all().iter().any(|label| labels.contains(label)))
            && self.expires_before.is_none_or(|before| row.expires_at.is_some_and(|at| at < before))
            && self.health.is_none_or(|state| state == health())
    }
}

/// A position in a list of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// Expiry of the credential at this position, if the list is ordered by expiry.
    pub expires_at: Option<Timestamp>,
    /// ID of the credential at this position.
    pub id: CredentialId,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRows {
    /// Credentials of the page.
    pub rows: Vec<StoredCredential>,
    /// Position at which the search stopped after [`LIST_WINDOW`] rows although more remain. `None` if the page is full
    /// or the list has ended.
    pub searched_to: Option<ListPosition>,
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

/// Counts a comparison and reads the credential to compare with.
#[derive(Clone, Copy, Debug)]
pub struct MatchCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
}

/// Queues a check of a version for the activation process.
#[derive(Clone, Copy, Debug)]
pub struct RequestCheck {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Version to check. `None` selects the staged version if there is one, otherwise the current version.
    pub version: Option<i64>,
}

/// An activation that issued a credential, including its renewals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialUse {
    /// ID of the activation.
    pub activation: ActivationId,
    /// Start of the activation.
    pub at: Timestamp,
    /// Time at which the activation expires or expired (exclusive end).
    pub expires_at: Timestamp,
    /// Time at which its integration ended the activation before it expired.
    pub ended_at: Option<Timestamp>,
    /// Version that was issued last.
    pub version: i64,
    /// ID of the integration.
    pub integration: IntegrationId,
    /// Name of the integration. `None` if it was deleted, and from stores, which do not read it.
    pub name: Option<IntegrationName>,
    /// Form in which the credential was issued last.
    pub form: VendedForm,
    /// Purpose that the integration stated.
    pub purpose: Option<Purpose>,
    /// Subject of the workload, if it authenticated with an identity token.
    pub workload: Option<String>,
}

/// Retention of the uses of a credential after the activation expired, in seconds: 30 days.
pub const USE_SECONDS: i64 = 30 * 24 * 3_600;

/// A position in the list of a credential's uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsePosition {
    /// Start of the activation.
    pub at: Timestamp,
    /// ID of the activation.
    pub activation: ActivationId,
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

/// Deletes one credential, including the wrapped data keys of all versions.
#[derive(Clone, Copy, Debug)]
pub struct DeleteCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision that the credential must still have. `None` accepts any.
    pub revision: Option<i64>,
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

    /// Returns the credential and version that an earlier request with this idempotency key created, or `None` if the
    /// key is unused. Without a key, only authorizes the principal.
    ///
    /// # Errors
    /// [`Refusal::IdempotencyMismatch`] if the key was used for another request.
    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError>;

    /// Reads a page of credentials.
    async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError>;

    /// Reads a credential of the principal's organization.
    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError>;

    /// Reads a credential of the principal's organization with its other versions.
    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError>;

    /// Reads the same immediately before [`CredentialRepository::change_credential`]. A store may read from its writer
    /// connection if that is cheaper.
    async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.credential_versions(query).await
    }

    /// Changes a credential of the principal's organization and returns the number of the affected version. If the same
    /// request was already carried out, returns the number from that time.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`]: the credential does not exist.
    /// - [`Refusal::IdempotencyMismatch`]: the key was used for another request.
    /// - [`Refusal::Changed`]: the credential no longer has the revision.
    /// - [`Refusal::Contended`]: the organization key is no longer active. Seal again.
    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError>;

    /// Deletes a credential of the principal's organization. Returns `false` if it does not exist. If several calls
    /// race, exactly one returns `true`.
    ///
    /// # Errors
    /// [`Refusal::Changed`] if the credential no longer has the revision.
    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError>;

    /// Counts a fingerprint comparison and reads the credential of the principal's organization to compare with.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`]: the credential does not exist.
    /// - [`Refusal::TooOften`]: [`HourlyLimit::MATCHES`](crate::hourly::HourlyLimit) is exceeded.
    async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError>;

    /// Queues a check of a version of a credential of the principal's organization. Each credential has at most one
    /// queued check: a later request replaces it.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`]: the credential does not exist.
    /// - [`Refusal::NoSuchVersion`]: the version does not exist.
    /// - [`Refusal::NoChecker`]: no activation process [claimed checks](super::ActivationRepository::claim_checks)
    ///   within [`CHECKER_SECONDS`](super::CHECKER_SECONDS).
    /// - [`Refusal::TooOften`]: [`HourlyLimit::CHECKS`](crate::hourly::HourlyLimit) is exceeded.
    async fn request_check(&self, command: Command<RequestCheck>) -> Result<(), StoreError>;

    /// Reads a page of the uses of a credential of the principal's organization, newest first. Returns `None` if the
    /// credential does not exist.
    async fn list_uses(
        &self,
        query: List<UsePosition, (OrganizationId, CredentialId)>,
    ) -> Result<Option<Vec<CredentialUse>>, StoreError>;
}

/// Ports that the operations on a vault require of a store.
pub trait CredentialStore: CredentialRepository + KeyRepository + AuditLog {}

impl<S: CredentialRepository + KeyRepository + AuditLog + ?Sized> CredentialStore for S {}
