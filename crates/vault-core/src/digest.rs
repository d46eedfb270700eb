//! Keyed digests: what is looked up, compared or bound without being stored in clear.

use crate::id::KeyId;
use std::fmt;
use subtle::ConstantTimeEq;

/// What a digest is for. Digests of different purposes never agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DigestPurpose {
    /// An account's address, for the directory.
    Address,
    /// The decoy of an address, which takes the writes of its uncounted attempts.
    AttemptBucket,
    /// The network a login came from.
    Network,
    /// What an account row grants.
    AccountGrant,
    /// What an invitation grants to the holder of its enrolment code.
    InvitationGrant,
    /// An enrolment code.
    EnrolmentCode,
    /// What an integration's row grants.
    IntegrationGrant,
    /// An integration token.
    IntegrationToken,
    /// The request body of an idempotency key.
    IdempotentBody,
    /// A list cursor.
    Cursor,
    /// A label of a credential, for its store.
    Label,
    /// What a credential's row says: which version is handed out, as what and in which forms.
    CredentialState,
    /// An issuer of workloads' tokens, with its keys.
    IssuerGrant,
    /// A receiver of events.
    ReceiverGrant,
    /// An event on its way to a receiver, and how far events have been read.
    EventDelivery,
    /// What happened, for the id of an event that has none of its own.
    EventId,
    /// The state in which the audit records a row that grants. The row itself never accepts it.
    RecordedState,
}

impl DigestPurpose {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Address,
        Self::AttemptBucket,
        Self::Network,
        Self::AccountGrant,
        Self::InvitationGrant,
        Self::EnrolmentCode,
        Self::IntegrationGrant,
        Self::IntegrationToken,
        Self::IdempotentBody,
        Self::Cursor,
        Self::Label,
        Self::CredentialState,
        Self::IssuerGrant,
        Self::ReceiverGrant,
        Self::EventDelivery,
        Self::EventId,
        Self::RecordedState,
    ];

    /// The label that separates this purpose's key from every other.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::AttemptBucket => "attempt bucket",
            Self::Network => "network",
            Self::AccountGrant => "account grant",
            Self::InvitationGrant => "invitation grant",
            Self::EnrolmentCode => "enrolment code",
            Self::IntegrationGrant => "integration grant",
            Self::IntegrationToken => "integration token",
            Self::IdempotentBody => "idempotent body",
            Self::Cursor => "cursor",
            Self::Label => "label",
            Self::CredentialState => "credential state",
            Self::IssuerGrant => "issuer grant",
            Self::ReceiverGrant => "receiver grant",
            Self::EventDelivery => "event delivery",
            Self::EventId => "event id",
            Self::RecordedState => "recorded state",
        }
    }

    /// Whether it is made with a key. Of 128 random bits and more a plain hash tells nothing, so codes and tokens of that kind are
    /// looked up by one, and no key has to be replaced for them. An id of an event is no secret.
    pub const fn is_keyed(self) -> bool {
        !matches!(self, Self::EnrolmentCode | Self::IntegrationToken | Self::EventId)
    }
}

/// 256 bits of HMAC-SHA-256. Compared in constant time.
#[derive(Clone, Copy, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// What a row is looked up by, under each look-up key that there is: while a key is replaced, rows under the one before and rows under
/// the new one are the same to whoever looks for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUpDigests {
    /// The one that rows get from now on comes first.
    digests: Vec<Digest>,
    /// How many of them, from the first, a row is entered under.
    entered: usize,
}

impl LookUpDigests {
    /// `entered`, the one that rows get from now on first, and those that other rows may still have. A row that must be unique is entered
    /// under each of `entered`, so that a process which does not know of the latest key meets it, too.
    pub fn new(entered: Vec<Digest>, others: impl IntoIterator<Item = Digest>) -> Self {
        let count = entered.len();
        Self { digests: entered.into_iter().chain(others).collect(), entered: count }
    }

    /// The one that rows get from now on.
    pub fn current(&self) -> &Digest {
        // There is one always.
        const NONE: &Digest = &Digest([0; 32]);
        self.digests.first().unwrap_or(NONE)
    }

    /// All of them: what has one of these is what is looked for.
    pub fn all(&self) -> &[Digest] {
        &self.digests
    }

    /// Those that a new row is entered under.
    pub fn entered(&self) -> &[Digest] {
        self.digests.get(..self.entered).unwrap_or(&self.digests)
    }

    /// Those that only rows from before may have.
    pub fn others(&self) -> &[Digest] {
        self.digests.get(self.entered..).unwrap_or_default()
    }
}

impl From<Digest> for LookUpDigests {
    fn from(digest: Digest) -> Self {
        Self::new(vec![digest], [])
    }
}

/// The code over a row that grants, or over a cursor: a digest under an instance key, and that key. Each names its own, so that
/// rows are moved to another key one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMac {
    /// The instance key that made it.
    pub key: KeyId,
    /// The digest.
    pub code: Digest,
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}
