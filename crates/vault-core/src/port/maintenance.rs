//! What keeps the store small, and whether it answers.

use super::StoreError;
use crate::credential_counts::{CountedCredentials, ExpiryBounds};
use crate::id::{CredentialId, OrganizationId};
use crate::time::Timestamp;
use async_trait::async_trait;

/// How many rows one delete_expired deletes at most.
pub const EXPIRED_SLICE: usize = 500;
/// How long an idempotency key is kept, in seconds: 24 h.
pub const IDEMPOTENCY_SECONDS: i64 = 24 * 3600;

/// How many credentials one count looks at, at most.
pub const COUNT_SLICE: usize = 10_000;

/// Counts credentials of all organizations, in the order of organization and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountCredentials {
    /// What tells the expiries apart.
    pub bounds: ExpiryBounds,
    /// Only those after this one.
    pub after: Option<(OrganizationId, CredentialId)>,
    /// How many, at most.
    pub limit: usize,
}

/// What a count came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedSlice {
    /// The credentials, each in one group.
    pub groups: Vec<CountedCredentials>,
    /// The last credential; `None`: there was none to count.
    pub last: Option<(OrganizationId, CredentialId)>,
}

/// A kind of row that is deleted when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expired {
    /// Sessions past their expiry.
    Sessions,
    /// Idempotency keys older than [`IDEMPOTENCY_SECONDS`].
    IdempotencyKeys,
    /// Networks without a login for 90 days, and attempt counters that say nothing any more.
    Attempts,
    /// Invitations past their expiry, with their directory entries.
    Invitations,
    /// Notices older than 90 days.
    Notices,
    /// New passcode seeds that nobody confirmed in time.
    PendingSeeds,
    /// Activations past their expiry.
    Activations,
    /// Previous versions of credentials whose time is over.
    PreviousVersions,
    /// Uses of credentials older than [`USE_SECONDS`](super::USE_SECONDS).
    CredentialUses,
    /// Counts whose hour is over.
    HourlyCounts,
    /// Credentials, idempotency keys and activations of deleted organizations.
    Erasures,
}

impl Expired {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Sessions,
        Self::IdempotencyKeys,
        Self::Attempts,
        Self::Invitations,
        Self::Notices,
        Self::PendingSeeds,
        Self::Activations,
        Self::PreviousVersions,
        Self::CredentialUses,
        Self::HourlyCounts,
        Self::Erasures,
    ];

    /// The kind's name in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::IdempotencyKeys => "idempotency keys",
            Self::Attempts => "login attempts",
            Self::Invitations => "invitations",
            Self::Notices => "notices",
            Self::PendingSeeds => "unconfirmed passcode seeds",
            Self::Activations => "activations",
            Self::PreviousVersions => "previous versions of credentials",
            Self::CredentialUses => "uses of credentials",
            Self::HourlyCounts => "hourly counts",
            Self::Erasures => "rows of deleted organizations",
        }
    }
}

/// Maintenance of the store.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Deletes up to [`EXPIRED_SLICE`] rows of one kind whose time has come at `now`, found by an index. How many it
    /// deleted: with fewer than a slice, none is left.
    async fn delete_expired(&self, expired: Expired, now: Timestamp) -> Result<usize, StoreError>;

    /// Whether the store answers and, where it is a server, how far its clock is from `now`, in milliseconds.
    async fn check(&self, now: Timestamp) -> Result<Option<i64>, StoreError>;

    /// Counts credentials. The first slice begins with the first one of all.
    async fn count_credentials(&self, query: CountCredentials) -> Result<CountedSlice, StoreError>;

    /// How many uses were taken of the active organization key that has the most; 0 if there is none.
    async fn most_key_uses(&self) -> Result<i64, StoreError>;
}
