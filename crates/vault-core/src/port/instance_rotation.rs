//! Moving what lies under one key of the instance to another, and destroying those under which nothing is left.

use super::{KeyDestruction, SealError, StoreError};
use crate::account::SignedAccount;
use crate::audit::SealedAuditRecord;
use crate::digest::{Digest, RowMac};
use crate::id::{AccountId, CredentialId, KeyId, OrganizationId, ReceiverId};
use crate::integration::StoredIntegration;
use crate::invitation::StoredInvitation;
use crate::keyring::KeyTerm;
use crate::receiver::{SealedTarget, StoredReceiver};
use crate::sealed::{Blob, InstanceKeyRecord, InstanceRecord, SealedPassword, SealedSeed};
use crate::time::Timestamp;
use async_trait::async_trait;
use uuid::Uuid;

/// The rows that have something under a key of the instance. Those of the instance-wide keys, and the keyring, are moved when
/// the instance key is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstancePart {
    /// Organizations: their fingerprint keys are wrapped.
    Organizations,
    /// Keys of organizations: wrapped.
    OrganizationKeys,
    /// Accounts: code, password and seed.
    Accounts,
    /// Seeds that wait to be confirmed.
    PendingSeeds,
    /// Invitations: code.
    Invitations,
    /// Drafts of enrolments: password and seed.
    Drafts,
    /// Integrations: code.
    Integrations,
    /// Receivers: address and signing secrets, under the receiver key.
    Receivers,
}

impl InstancePart {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Organizations,
        Self::OrganizationKeys,
        Self::Accounts,
        Self::PendingSeeds,
        Self::Invitations,
        Self::Drafts,
        Self::Integrations,
        Self::Receivers,
    ];

    /// The name of its table.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Organizations => "organizations",
            Self::OrganizationKeys => "organization_keys",
            Self::Accounts => "accounts",
            Self::PendingSeeds => "pending_seeds",
            Self::Invitations => "invitations",
            Self::Drafts => "enrolment_drafts",
            Self::Integrations => "integrations",
            Self::Receivers => "receivers",
        }
    }
}

/// Where a row is: its organization, and its own id in it; of an organization, its own id twice. What belongs to the instance has
/// the nil organization.
pub type InstancePlace = (OrganizationId, Uuid);

/// What a row has under keys of the instance. Each of its parts names its own key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceRow {
    /// An organization's fingerprint key.
    Organization {
        /// The organization.
        organization: OrganizationId,
        /// The key.
        key: KeyId,
        /// The key, wrapped.
        wrapped: Blob,
    },
    /// An organization's key.
    OrganizationKey {
        /// The organization.
        organization: OrganizationId,
        /// The key.
        key: KeyId,
        /// The key, wrapped.
        wrapped: Blob,
    },
    /// An account.
    Account {
        /// What its code covers.
        signed: Box<SignedAccount>,
        /// Its code.
        code: RowMac,
        /// Its password.
        password: SealedPassword,
        /// Its seed.
        seed: SealedSeed,
    },
    /// A seed that waits to be confirmed.
    PendingSeed {
        /// The organization.
        organization: OrganizationId,
        /// The account.
        account: AccountId,
        /// The seed.
        seed: SealedSeed,
    },
    /// An invitation.
    Invitation(Box<StoredInvitation>),
    /// A draft of an enrolment.
    Draft {
        /// The organization.
        organization: OrganizationId,
        /// The account.
        account: AccountId,
        /// The password.
        password: SealedPassword,
        /// The seed.
        seed: SealedSeed,
    },
    /// An integration.
    Integration(Box<StoredIntegration>),
    /// A receiver.
    Receiver(Box<StoredReceiver>),
}

impl InstanceRow {
    /// Which part it belongs to.
    pub const fn part(&self) -> InstancePart {
        match self {
            Self::Organization { .. } => InstancePart::Organizations,
            Self::OrganizationKey { .. } => InstancePart::OrganizationKeys,
            Self::Account { .. } => InstancePart::Accounts,
            Self::PendingSeed { .. } => InstancePart::PendingSeeds,
            Self::Invitation(_) => InstancePart::Invitations,
            Self::Draft { .. } => InstancePart::Drafts,
            Self::Integration(_) => InstancePart::Integrations,
            Self::Receiver(_) => InstancePart::Receivers,
        }
    }

    /// Where it is.
    pub fn place(&self) -> InstancePlace {
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
            Self::Integration(stored) => (stored.integration.organization, *stored.integration.id.as_uuid()),
            Self::Receiver(stored) => {
                let organization = stored.receiver.organization.unwrap_or(OrganizationId::from_bytes([0; 16]));
                (organization, *stored.receiver.id.as_uuid())
            }
        }
    }

    /// The keys that its parts name.
    pub fn keys(&self) -> Vec<KeyId> {
        let (code, blobs): (Option<KeyId>, Vec<&Blob>) = match self {
            Self::Organization { wrapped, .. } | Self::OrganizationKey { wrapped, .. } => (None, vec![wrapped]),
            Self::Account { code, password, seed, .. } => (Some(code.key), vec![&password.0, &seed.blob]),
            Self::PendingSeed { seed, .. } => (None, vec![&seed.blob]),
            Self::Invitation(stored) => (Some(stored.digest.key), Vec::new()),
            Self::Draft { password, seed, .. } => (None, vec![&password.0, &seed.blob]),
            Self::Integration(stored) => (Some(stored.digest.key), Vec::new()),
            Self::Receiver(stored) => {
                let SealedTarget { address, secret, previous_secret, .. } = &stored.target;
                (None, vec![address, secret, previous_secret])
            }
        };
        code.into_iter().chain(blobs.into_iter().filter_map(Blob::key)).collect()
    }
}

/// Puts a new instance key in the place of the active one, which then only opens.
#[derive(Clone, Debug)]
pub struct ReplaceInstanceKey {
    /// The deployment as it was read: the row must still name its root key and instance key, with the same wrap.
    pub current: InstanceRecord,
    /// The deployment with its new instance key, under the same root key.
    pub next: InstanceRecord,
    /// All instance-wide keys, wrapped by the new instance key: those that there were, and those that take their place.
    pub keys: Vec<InstanceKeyRecord>,
    /// When it is replaced.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// Asks for rows with something under a key, ordered by their place.
#[derive(Clone, Copy, Debug)]
pub struct FindUnderInstanceKey {
    /// The key.
    pub key: KeyId,
    /// Which rows.
    pub part: InstancePart,
    /// Only those after this place.
    pub after: Option<InstancePlace>,
    /// How many to return at most.
    pub limit: usize,
}

/// Stores what other keys have wrapped, sealed and signed.
#[derive(Clone, Debug)]
pub struct MoveToInstanceKey {
    /// The instance key of the deployment; it must be active.
    pub to: KeyId,
    /// Rows as they were read, and as they are to be; all of one part, ordered by their place.
    pub rows: Vec<(InstanceRow, InstanceRow)>,
}

/// A row, and the digests that the look-up key in use makes for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookUpMove {
    /// What leads to an account or an invitation by its address.
    Address {
        /// [`InstancePart::Accounts`] or [`InstancePart::Invitations`].
        part: InstancePart,
        /// The row.
        place: InstancePlace,
        /// The digest of its address. It is found by no other from now on.
        address: Digest,
    },
    /// A credential.
    Credential {
        /// Its organization.
        organization: OrganizationId,
        /// The credential.
        id: CredentialId,
        /// The code that its row has, or else nothing is changed, and the one that it gets.
        code: (Digest, Digest),
        /// The digests of its labels, in the place of those that it has.
        labels: Vec<Digest>,
    },
}

/// Destroys a key that only opens.
#[derive(Clone, Debug)]
pub struct DestroyKey {
    /// The key, which retires.
    pub term: KeyTerm,
    /// The keyring document as it was read; it must still be stored.
    pub current: Blob,
    /// The keyring document without the key.
    pub keyring: Blob,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What moves rows from one instance key to another.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait InstanceKeyRotation: Send + Sync {
    /// Replaces the active key. `false`: the deployment is not as it was read any more, nothing was changed. From this
    /// decision on, whatever was sealed or signed under the key before is refused as
    /// [`Refusal::Contended`](crate::Refusal::Contended).
    async fn replace_instance_key(&self, command: ReplaceInstanceKey) -> Result<bool, StoreError>;

    /// Rows with something under an instance key or a receiver key.
    async fn find_under_instance_key(&self, query: FindUnderInstanceKey) -> Result<Vec<InstanceRow>, StoreError>;

    /// How many rows still need a key that retires. An instance key: those with something under it, the instance-wide keys
    /// included. A receiver key: the receivers under it. An audit key: entries, checkpoints and the position of the delivery that
    /// name it. A token key: the sessions that began before it retired, or within [`KeyTerm::DRAINED_SECONDS`] after. A look-up
    /// key: deliveries of events, and idempotency keys, from before that time, which are removed by and by; the other rows that it made
    /// digests of are not counted, but [moved](Self::move_look_ups) before it is destroyed.
    async fn count_under(&self, term: KeyTerm) -> Result<i64, StoreError>;

    /// Stores rows as another key has made them again, and gives how many: a row that was changed or deleted meanwhile is
    /// left as it is. Versions and times stay. `None`: the key is not active, nothing was changed.
    async fn move_to_instance_key(&self, command: MoveToInstanceKey) -> Result<Option<usize>, StoreError>;

    /// Gives rows the digests that another look-up key makes of them, and says how many it changed: one that has them already, is gone or
    /// was changed meanwhile is left as it is. Versions and times stay. Whoever enters the same address at that moment finds the row by one
    /// of the two digests.
    async fn move_look_ups(&self, rows: Vec<LookUpMove>) -> Result<usize, StoreError>;

    /// Destroys a key, unless a row [needs it](Self::count_under), and stores the keyring document without it. An instance key is
    /// counted in one statement after its row was locked, so nothing can come between. Of another purpose's key the caller says
    /// that it retired so long ago that nothing is made under it any more.
    ///
    /// # Errors
    /// Refused with [`Refusal::Contended`](crate::Refusal::Contended): another keyring document is stored by now.
    async fn destroy_key(&self, command: DestroyKey) -> Result<KeyDestruction, StoreError>;
}

/// A new instance key, and what is below it already.
#[derive(Clone, Debug)]
pub struct NextInstanceKey {
    /// The deployment with the new key, wrapped by the root key, and the next keyring document under it.
    pub instance: InstanceRecord,
    /// The instance-wide keys, wrapped by the new key: those given, and a new one of each purpose that has its keys replaced.
    pub keys: Vec<InstanceKeyRecord>,
}

/// Wraps and seals again, under the active instance key, what another one has wrapped and sealed. What the active one has made
/// already, and the zeros of an account that awaits enrolment, are returned unchanged. Anything else without a readable header fails.
#[async_trait]
pub trait InstanceRewrapper: Send + Sync {
    /// The keys that `current` says there are.
    ///
    /// # Errors
    /// The keyring document does not open.
    fn terms(&self, current: &InstanceRecord) -> Result<Vec<KeyTerm>, SealError>;

    /// A successor for the instance key of `current`, made at `now`, and `keys` under it, with new ones for tokens, the audit and
    /// receivers.
    ///
    /// # Errors
    /// One of the keys does not unwrap; the root key cannot be used; no entropy.
    async fn next_instance_key(
        &self,
        current: &InstanceRecord,
        keys: &[InstanceKeyRecord],
        now: Timestamp,
    ) -> Result<NextInstanceKey, SealError>;

    /// The keyring document after that of `current`, without the retiring key `key`; that of `current` where it does
    /// not have the key, whose row was then put there by somebody else.
    ///
    /// # Errors
    /// The document does not open, or the key is active; no entropy.
    fn keyring_without(&self, current: &InstanceRecord, key: KeyId) -> Result<Blob, SealError>;

    /// The fingerprint key of an organization.
    ///
    /// # Errors
    /// It does not unwrap.
    fn fingerprint_key(&self, organization: OrganizationId, key: KeyId, wrapped: &Blob) -> Result<Blob, SealError>;

    /// A key of an organization.
    ///
    /// # Errors
    /// It does not unwrap.
    fn organization_key(&self, organization: OrganizationId, key: KeyId, wrapped: &Blob) -> Result<Blob, SealError>;

    /// The verifier of an account's password.
    ///
    /// # Errors
    /// It does not open.
    fn password(&self, account: AccountId, sealed: &SealedPassword) -> Result<SealedPassword, SealError>;

    /// What is sealed of a receiver.
    ///
    /// # Errors
    /// It does not open.
    fn receiver(&self, receiver: ReceiverId, target: &SealedTarget) -> Result<SealedTarget, SealError>;

    /// Sees that everything of a row that keys of the instance wrap and seal opens.
    ///
    /// # Errors
    /// What does not.
    fn opens(&self, row: &InstanceRow) -> Result<(), SealError>;

    /// The seed of an account.
    ///
    /// # Errors
    /// It does not open.
    fn seed(&self, account: AccountId, sealed: &SealedSeed) -> Result<SealedSeed, SealError>;
}
