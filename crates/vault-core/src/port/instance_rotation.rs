//! Ports for the rotation of instance keys: the rows that depend on them, and the keys.

use super::{KeyDestruction, Reply, SealError, StoreError, StoredRowKey};
use crate::account::SignedAccount;
use crate::audit::SealedAuditRecord;
use crate::digest::{Digest, RowMac};
use crate::id::{AccountId, KeyId, OrganizationId};
use crate::invitation::{EnrolmentDraft, StoredInvitation};
use crate::keyring::KeyringEntry;
use crate::passcode::PendingSeed;
use crate::sealed::{Blob, InstanceKeyRecord, InstanceRecord, OrganizationKeys, SealedPassword, SealedSeed};
use crate::time::Timestamp;
use async_trait::async_trait;
use uuid::Uuid;

/// A kind of row that depends on a key of the instance, in one of the [protected tables](super::ProtectedTable). The rotation
/// of the instance key also rewraps the instance-wide keys and the keyring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstancePart {
    /// Organizations: wrapped fingerprint keys.
    Organizations,
    /// Keys of organizations, wrapped.
    OrganizationKeys,
    /// Accounts: MAC, password and TOTP secret.
    Accounts,
    /// TOTP secrets that are pending confirmation.
    PendingSeeds,
    /// Invitations: MAC.
    Invitations,
    /// Enrolment drafts: password and TOTP secret.
    Drafts,
}

/// Key of a row: its organization and its own ID. Rows of organizations themselves have their own ID twice.
pub type InstanceRowKey = (OrganizationId, Uuid);

/// The fields of a row that depend on keys of the instance. Each field names its own key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceRow {
    /// The fingerprint key of an organization, with the keys to which its wrap is bound.
    Organization {
        /// ID of the organization.
        organization: OrganizationId,
        /// Its keys.
        keys: Box<OrganizationKeys>,
    },
    /// A key of an organization.
    OrganizationKey {
        /// ID of the organization.
        organization: OrganizationId,
        /// ID of the organization key.
        key: KeyId,
        /// The wrapped organization key.
        wrapped: Blob,
    },
    /// An account.
    Account {
        /// Fields that the row's MAC covers.
        signed: Box<SignedAccount>,
        /// MAC of the row.
        code: RowMac,
        /// The sealed password.
        password: SealedPassword,
        /// The sealed TOTP secret.
        seed: SealedSeed,
    },
    /// A TOTP secret that is pending confirmation.
    PendingSeed {
        /// The organization.
        organization: OrganizationId,
        /// The account.
        account: AccountId,
        /// The TOTP secret.
        pending: PendingSeed,
    },
    /// An invitation.
    Invitation(Box<StoredInvitation>),
    /// A draft of an enrolment.
    Draft {
        /// The organization.
        organization: OrganizationId,
        /// The account.
        account: AccountId,
        /// The draft.
        draft: EnrolmentDraft,
    },
}

impl InstanceRow {
    /// Returns the kind of the row.
    pub const fn part(&self) -> InstancePart {
        match self {
            Self::Organization { .. } => InstancePart::Organizations,
            Self::OrganizationKey { .. } => InstancePart::OrganizationKeys,
            Self::Account { .. } => InstancePart::Accounts,
            Self::PendingSeed { .. } => InstancePart::PendingSeeds,
            Self::Invitation(_) => InstancePart::Invitations,
            Self::Draft { .. } => InstancePart::Drafts,
        }
    }

    /// Returns the key of the row.
    pub fn place(&self) -> InstanceRowKey {
        match self {
            Self::Organization { organization, .. } => (*organization, *organization.as_uuid()),
            Self::OrganizationKey { organization, key, .. } => (*organization, *key.as_uuid()),
            Self::Account { signed, .. } => (signed.grant.organization, *signed.grant.account.as_uuid()),
            Self::PendingSeed { organization, account, .. } | Self::Draft { organization, account, .. } => {
                (*organization, *account.as_uuid())
            }
            Self::Invitation(stored) => {
                let grant = &stored.invitation.grant;
                (grant.organization, *grant.account.as_uuid())
            }
        }
    }

    /// Returns the keys that the fields of the row name.
    pub fn keys(&self) -> Vec<KeyId> {
        let (code, blobs): (Option<KeyId>, Vec<&Blob>) = match self {
            Self::Organization { keys, .. } => (None, vec![&keys.fingerprint_wrapped]),
            Self::OrganizationKey { wrapped, .. } => (None, vec![wrapped]),
            Self::Account { code, password, seed, .. } => (Some(code.key), vec![&password.blob, &seed.blob]),
            Self::PendingSeed { pending, .. } => (Some(pending.digest.key), vec![&pending.seed.blob]),
            Self::Invitation(stored) => (Some(stored.digest.key), Vec::new()),
            Self::Draft { draft, .. } => (Some(draft.digest.key), vec![&draft.password.blob, &draft.seed.blob]),
        };
        code.into_iter().chain(blobs.into_iter().filter_map(Blob::key)).collect()
    }
}

/// Replaces the active instance key with a new one. The old key can then only decrypt.
#[derive(Clone, Debug)]
pub struct ReplaceInstanceKey {
    /// The instance as read. The stored row must still have the same keys, wrap and keyring.
    pub current: InstanceRecord,
    /// The instance with its new instance key, wrapped by the same root key.
    pub next: InstanceRecord,
    /// All instance-wide keys, existing and new, wrapped by the new instance key.
    pub keys: Vec<InstanceKeyRecord>,
    /// Time of the replacement.
    pub now: Timestamp,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// A row that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRow {
    /// Name of the table.
    pub table: &'static str,
    /// ID of the row.
    pub id: String,
    /// The violation.
    pub reason: &'static str,
}

/// Rows of typed tables that depend on a key of the instance.
pub trait InstanceRows: Send + Sync {
    /// Reads the row keys of a part in their order, whatever key the rows name.
    fn instance_places(
        &self,
        part: InstancePart,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Reply<'_, Vec<StoredRowKey>>;

    /// Reads a row, if it exists.
    fn instance_row(
        &self,
        part: InstancePart,
        place: InstanceRowKey,
    ) -> Reply<'_, Option<Result<InstanceRow, UnreadableRow>>>;

    /// Replaces the fields that depend on the instance key, and preserves version and times. Returns `false` if the row is
    /// no longer as it was read.
    fn reseal_row(&self, before: &InstanceRow, after: &InstanceRow) -> Reply<'_, bool>;
}

/// A row with the lookup digest that the current lookup key produces for its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupMove {
    /// [`InstancePart::Accounts`] or [`InstancePart::Invitations`].
    pub part: InstancePart,
    /// Key of the row.
    pub place: InstanceRowKey,
    /// New digest of the address. It replaces all previous ones.
    pub address: Digest,
}

/// Destroys a key that only decrypts.
#[derive(Clone, Debug)]
pub struct DestroyKey {
    /// The retiring key.
    pub term: KeyringEntry,
    /// The keyring document as read. It must still be stored.
    pub current: Blob,
    /// The keyring document without the key.
    pub keyring: Blob,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Port that replaces and destroys keys of the instance.
#[async_trait]
pub trait InstanceKeyRotation: Send + Sync {
    /// Replaces the active key. Returns `false` and changes nothing if the instance is no longer as it was read. After
    /// this transaction, a write of anything sealed or signed with the previous key is refused with
    /// [`Refusal::Contended`](crate::Refusal::Contended).
    async fn replace_instance_key(&self, command: ReplaceInstanceKey) -> Result<bool, StoreError>;

    /// Returns the number of rows that still require a retiring key:
    /// - Instance key: rows that depend on it, including the instance-wide keys.
    /// - Audit key: entries, checkpoints and the delivery position that name it.
    /// - Token key: sessions that started before it retired, or within [`KeyringEntry::DRAINED_SECONDS`] after.
    /// - Lookup key: deliveries of events and idempotency keys from before that time, which are deleted gradually.
    ///   Other rows with digests of the key are not counted, but [rekeyed](Self::rekey_lookups) before it is destroyed.
    async fn count_under(&self, term: KeyringEntry) -> Result<i64, StoreError>;

    /// Replaces lookup digests of rows with those of another lookup key, and returns the number of changed rows. Skips
    /// rows that have these digests already, were deleted or were changed in the meantime, and preserves versions and
    /// times. A concurrent lookup of the same address finds the row by one of the two digests.
    async fn rekey_lookups(&self, rows: Vec<LookupMove>) -> Result<usize, StoreError>;

    /// Destroys a key unless a row [requires it](Self::count_under), and stores the keyring document without it. For an
    /// instance key, the count runs in one statement after the key's row is locked, so no row can start to use it
    /// concurrently. For other purposes, the caller guarantees that the key retired so long ago that nothing new is
    /// created with it.
    ///
    /// # Errors
    /// [`Refusal::Contended`](crate::Refusal::Contended) if another keyring document has been stored since.
    async fn destroy_key(&self, command: DestroyKey) -> Result<KeyDestruction, StoreError>;
}

/// A new instance key, with the keys that it wraps.
#[derive(Clone, Debug)]
pub struct NextInstanceKey {
    /// The instance with the new key, wrapped by the root key, and the next keyring document.
    pub instance: InstanceRecord,
    /// The instance-wide keys, wrapped by the new key: the given ones, and a new one for each purpose whose keys are
    /// replaced.
    pub keys: Vec<InstanceKeyRecord>,
}

/// Creates instance keys, and the keyring documents that list them.
#[async_trait]
pub trait InstanceRewrapper: Send + Sync {
    /// Returns the keys that the keyring of `current` lists.
    ///
    /// # Errors
    /// The keyring document cannot be decrypted.
    fn terms(&self, current: &InstanceRecord) -> Result<Vec<KeyringEntry>, SealError>;

    /// Creates a successor for the instance key of `current` at time `now`, and wraps `keys` with it, plus new keys for
    /// tokens and the audit log.
    ///
    /// # Errors
    /// One of the keys cannot be unwrapped, the root key is unavailable, or the operating system returns no randomness.
    async fn next_instance_key(
        &self,
        current: &InstanceRecord,
        keys: &[InstanceKeyRecord],
        now: Timestamp,
    ) -> Result<NextInstanceKey, SealError>;

    /// Returns the next keyring document, without the retiring key `key`. Returns the document of `current` if it does
    /// not list the key: its row was then inserted outside OrgVault.
    ///
    /// # Errors
    /// The document cannot be decrypted, the key is active, or the operating system returns no randomness.
    fn keyring_without(&self, current: &InstanceRecord, key: KeyId) -> Result<Blob, SealError>;
}
