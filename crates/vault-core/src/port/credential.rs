//! Credentials in the store.

use super::{AuditLog, Find, KeyRepository, KeyedDigester, List, StoreError};
use crate::activation::{Purpose, VendRule, VendedForm};
use crate::command::Command;
use crate::credential::{CredentialState, CredentialType, Health, HealthState, LastCheck, Superseded};
use crate::digest::{Digest, LookUpDigests};
use crate::error::Refusal;
use crate::id::{AccountId, ActivationId, CredentialId, IntegrationId, KeyId, OrganizationId};
use crate::integration::IntegrationName;
use crate::namespace::Namespace;
use crate::principal::Principal;
use crate::sealed::{Blob, SealedCredential, SealedMetadata};
use crate::time::Timestamp;
use async_trait::async_trait;

/// An idempotency key and its request, per account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The account that used the key.
    pub account: AccountId,
    /// The key: 1 to 255 visible ASCII characters.
    pub key: String,
    /// The keyed digests of the request it came with.
    pub body: LookUpDigests,
}

/// Saves one credential, made at the command's time.
#[derive(Clone, Debug)]
pub struct SaveCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// Its id.
    pub id: CredentialId,
    /// The version that its parts are sealed for.
    pub version: i64,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its sealed parts; the key they lie under must still be active.
    pub sealed: SealedCredential,
    /// What is said of it.
    pub description: StoredMetadata,
    /// The [code](CredentialState::code) over the row, whose revision is 1.
    pub code: Digest,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The idempotency key, if one was given.
    pub idempotency: Option<Idempotency>,
    /// The most credentials the organization may have.
    pub limit: i64,
}

impl SaveCredential {
    /// The refusal of one credential too many.
    pub const fn limit_reached(&self) -> Refusal {
        Refusal::LimitReached { what: "credentials", limit: self.limit }
    }
}

impl StoredCredential {
    /// What the row says.
    pub fn state(&self) -> CredentialState<'_> {
        CredentialState {
            kind: self.kind,
            namespace: &self.namespace,
            vend: self.vend,
            version: self.version,
            staged: self.staged,
            revision: self.revision,
            metadata_revision: self.metadata.as_ref().map(|metadata| metadata.revision),
        }
    }

    /// Whether the row says what its code covers.
    pub fn is_sound(&self, digester: &dyn KeyedDigester, organization: OrganizationId) -> bool {
        self.state().fits(digester, (organization, self.id), &self.code)
    }
}

/// What is said of a credential, and what a store finds it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMetadata {
    /// Labels, description and declared expiries; `None`: there are none.
    pub metadata: Option<SealedMetadata>,
    /// A digest of each label, in any order.
    pub labels: Vec<Digest>,
    /// In which forms it may be handed out.
    pub vend: VendRule,
}

/// How many rows a filtered list looks at, at most, for one page: so many that the index entries of several labels fit
/// into a reader's cache together. Clients are promised no more than 10,000.
pub const LIST_WINDOW: usize = 4_000;

/// Reads a page of a list, newest first; with [`ListCredentials::expires_before`] the soonest to expire first, then by
/// id.
#[derive(Clone, Debug)]
pub struct ListCredentials {
    /// Who asks.
    pub principal: Principal,
    /// The principal's organization.
    pub organization: OrganizationId,
    /// Now.
    pub now: Timestamp,
    /// Only those of this namespace.
    pub namespace: Option<Namespace>,
    /// Only those of this type.
    pub kind: Option<CredentialType>,
    /// Only those with all of these labels.
    pub labels: Vec<LookUpDigests>,
    /// Only those in this state.
    pub health: Option<HealthState>,
    /// How long before its expiry a credential is in the state `expiring`, in seconds.
    pub expiring_seconds: i64,
    /// Only those that expire before this moment.
    pub expires_before: Option<Timestamp>,
    /// Begin after this one.
    pub after: Option<ListPosition>,
    /// At most so many.
    pub limit: usize,
}

impl ListCredentials {
    /// Whether it holds a credential of this description, for stores that filter in memory.
    pub fn holds(&self, row: &StoredCredential, labels: &[Digest]) -> bool {
        let health = || Health::at(self.now, row.expires_at, self.expiring_seconds, row.check).state;
        self.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
            && self.kind.is_none_or(|kind| row.kind == kind)
            && self.labels.iter().all(|label| label.all().iter().any(|label| labels.contains(label)))
            && self.expires_before.is_none_or(|before| row.expires_at.is_some_and(|at| at < before))
            && self.health.is_none_or(|state| state == health())
    }
}

/// A place in a list of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// When the credential there expires, in a list that is in this order.
    pub expires_at: Option<Timestamp>,
    /// The credential there.
    pub id: CredentialId,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRows {
    /// The credentials found.
    pub rows: Vec<StoredCredential>,
    /// Where the search ended after [`LIST_WINDOW`] rows, with more to come; `None`: at the limit or the end of the list.
    pub searched_to: Option<ListPosition>,
}

/// A credential as stored, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCredential {
    /// Its id.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its version.
    pub version: i64,
    /// When it was saved.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// How many changes clients have made to it, the save included. Every [`ChangeCredential`] names the one it has seen.
    pub revision: i64,
    /// The staged version, if there is one.
    pub staged: Option<i64>,
    /// When it expires: the earlier of what its owner declared and what the data says. Not authenticated: it says when to
    /// warn.
    pub expires_at: Option<Timestamp>,
    /// In which forms it may be handed out.
    pub vend: VendRule,
    /// The [code](CredentialState::code) over the row.
    pub code: Digest,
    /// Labels, description and declared expiries, sealed.
    pub metadata: Option<SealedMetadata>,
    /// What the last check of the current version found.
    pub check: Option<LastCheck>,
    /// When it was last activated, to the minute.
    pub last_activated_at: Option<Timestamp>,
    /// The organization key.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// A version of a credential that is not the current one, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Its number.
    pub number: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ceased to be the current one; `None`: it is staged.
    pub superseded: Option<Superseded>,
    /// What its last check found.
    pub check: Option<LastCheck>,
    /// The organization key.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// A credential and its other versions, read at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersions {
    /// The credential, with its current version.
    pub current: StoredCredential,
    /// When the current version was made.
    pub created_at: Timestamp,
    /// The highest number that a version of it ever had.
    pub highest: i64,
    /// The others, by number.
    pub others: Vec<StoredVersion>,
}

/// Changes a credential, if no other client has changed it since it was read.
#[derive(Clone, Debug)]
pub struct ChangeCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub id: CredentialId,
    /// The revision that was read. The change makes the next one.
    pub revision: i64,
    /// The change.
    pub change: CredentialChange,
    /// What is said of it from now on; `None`: what was said before.
    pub description: Option<StoredMetadata>,
    /// The [code](CredentialState::code) over the row after the change.
    pub code: Digest,
    /// When it expires after the change.
    pub expires_at: Option<Timestamp>,
}

/// What changes of a credential. Numbers are those of versions that were read with the revision.
#[derive(Clone, Debug)]
pub enum CredentialChange {
    /// A new version is current; the one before is kept as a previous one.
    Replace {
        /// The new version, [`StoredVersions::highest`] plus one.
        version: NewVersion,
        /// When the version that was current is destroyed.
        destroy_at: Timestamp,
    },
    /// A new version is staged, and takes the place of one that was.
    Stage(NewVersion),
    /// Another version is current; the one before is kept as a previous one.
    Promote {
        /// The version.
        number: i64,
        /// When the version that was current is destroyed.
        destroy_at: Timestamp,
        /// Versions that are destroyed.
        destroyed: Vec<i64>,
    },
    /// A version that is not the current one is destroyed, its wrapped data key included.
    Destroy(i64),
    /// No version changes.
    Describe,
}

impl CredentialChange {
    /// The current and the staged version after the change, of those before it.
    pub fn versions_after(&self, current: i64, staged: Option<i64>) -> (i64, Option<i64>) {
        match self {
            Self::Replace { version, .. } => (version.number, staged),
            Self::Stage(version) => (current, Some(version.number)),
            Self::Promote { number, .. } => (*number, staged.filter(|staged| staged != number)),
            Self::Destroy(number) => (current, staged.filter(|staged| staged != number)),
            Self::Describe => (current, staged),
        }
    }
}

/// Counts a comparison, and reads what to compare with.
#[derive(Clone, Copy, Debug)]
pub struct MatchCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub id: CredentialId,
}

/// Has the activation side check a version.
#[derive(Clone, Copy, Debug)]
pub struct RequestCheck {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub id: CredentialId,
    /// The version; `None`: the staged one, or the current one where none is staged.
    pub version: Option<i64>,
}

/// A time that a credential was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialUse {
    /// The activation.
    pub activation: ActivationId,
    /// When.
    pub at: Timestamp,
    /// The integration.
    pub integration: IntegrationId,
    /// Its name; `None`: it was deleted.
    pub name: Option<IntegrationName>,
    /// In which form.
    pub form: VendedForm,
    /// What the integration said it is for.
    pub purpose: Option<Purpose>,
    /// The subject of the workload that it proved to be, where it showed an identity token.
    pub workload: Option<String>,
}

/// How long the uses of a credential are kept, in seconds: 30 days.
pub const USE_SECONDS: i64 = 30 * 24 * 3_600;

/// A place in the list of a credential's uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsePosition {
    /// When.
    pub at: Timestamp,
    /// The activation.
    pub activation: ActivationId,
}

/// A version to store.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its number, which its parts are sealed for.
    pub number: i64,
    /// Its sealed parts; the key they lie under must still be active.
    pub sealed: SealedCredential,
    /// The idempotency key, if one was given.
    pub idempotency: Option<Idempotency>,
    /// Versions that are destroyed, the current one among them if it is not kept.
    pub destroyed: Vec<i64>,
}

/// Deletes one credential, the wrapped data keys of all versions included.
#[derive(Clone, Copy, Debug)]
pub struct DeleteCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub id: CredentialId,
    /// The revision that it must still have; `None`: whatever it has.
    pub revision: Option<i64>,
}

/// Credentials. Every method refuses a principal that may no longer act ([`StoreError::Denied`]), in the same
/// transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// Saves one and gives its id; or, where the same request was carried out before, only the id that it made.
    ///
    /// Refused with [`Refusal::IdempotencyMismatch`]; [`Refusal::Contended`]: the organization key is no longer active,
    /// seal again; [`SaveCredential::limit_reached`].
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError>;

    /// The credential and version that an earlier request under this idempotency key made. `None`: the key is free;
    /// without a key, the principal alone is judged.
    ///
    /// Refused with [`Refusal::IdempotencyMismatch`].
    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError>;

    /// Reads a page.
    async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError>;

    /// Reads one of the principal's organization.
    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError>;

    /// Reads one of the principal's organization with its other versions.
    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError>;

    /// The same, just before [`CredentialRepository::change_credential`]: a store may read it where it writes, if that
    /// is cheaper.
    async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.credential_versions(query).await
    }

    /// Changes one of the principal's organization and gives the number of the version concerned; or, where the same
    /// request was carried out before, only the number that it gave.
    ///
    /// Refused with [`Refusal::NotFound`]; [`Refusal::IdempotencyMismatch`]; [`Refusal::Changed`]: it no longer has the
    /// revision; [`Refusal::Contended`]: the organization key is no longer active, seal again.
    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError>;

    /// Deletes a credential of the principal's organization. `false`: it does not exist. Of several calls at once, one
    /// returns `true`.
    ///
    /// Refused with [`Refusal::Changed`].
    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError>;

    /// Reads one of the principal's organization, to compare its fingerprint, and counts that.
    ///
    /// Refused with [`Refusal::NotFound`]; [`Refusal::TooOften`] by [`HourlyLimit::MATCHES`](crate::hourly::HourlyLimit).
    async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError>;

    /// Has a version of one of the principal's organization checked. One request waits per credential; a later one takes
    /// its place.
    ///
    /// Refused with [`Refusal::NotFound`]; [`Refusal::NoSuchVersion`]; [`Refusal::NoChecker`]: no activation side
    /// [took checks](super::ActivationRepository::take_checks) within [`CHECKER_SECONDS`](super::CHECKER_SECONDS);
    /// [`Refusal::TooOften`] by [`HourlyLimit::CHECKS`](crate::hourly::HourlyLimit).
    async fn request_check(&self, command: Command<RequestCheck>) -> Result<(), StoreError>;

    /// Reads a page of the uses of a credential of the principal's organization, newest first. `None`: it does not exist.
    async fn list_uses(
        &self,
        query: List<UsePosition, (OrganizationId, CredentialId)>,
    ) -> Result<Option<Vec<CredentialUse>>, StoreError>;
}

/// What the vault's members need of a store.
pub trait CredentialStore: CredentialRepository + KeyRepository + AuditLog {}

impl<S: CredentialRepository + KeyRepository + AuditLog + ?Sized> CredentialStore for S {}
