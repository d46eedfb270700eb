//! Port for the deletion of expired rows, and for health checks of the store.

use super::StoreError;
use crate::credential_counts::{CountedCredentials, ExpiryBounds};
use crate::id::{CredentialId, OrganizationId};
use crate::time::Timestamp;
use async_trait::async_trait;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Maximum number of rows that one call of `delete_expired` deletes.
pub const EXPIRED_SLICE: usize = 500;
/// Retention of an idempotency key, in seconds: 24 h.
pub const IDEMPOTENCY_SECONDS: i64 = 24 * 3600;

/// Maximum number of credentials that one call counts.
pub const COUNT_SLICE: usize = 10_000;

/// Counts credentials of all organizations, ordered by organization and ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountCredentials {
    /// Limits of the expiry groups.
    pub bounds: ExpiryBounds,
    /// Position after which the slice starts.
    pub after: Option<(OrganizationId, CredentialId)>,
    /// Maximum number of credentials.
    pub limit: usize,
}

/// Result of a count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedSlice {
    /// Numbers of credentials. Each credential is in one group.
    pub groups: Vec<CountedCredentials>,
    /// The last counted credential. `None` if none remained.
    pub last: Option<(OrganizationId, CredentialId)>,
}

/// A kind of row that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Expired {
    /// Sessions past their expiry.
    Sessions,
    /// Idempotency keys older than [`IDEMPOTENCY_SECONDS`].
    #[strum(to_string = "idempotency keys")]
    IdempotencyKeys,
    /// Networks without a login for 90 days, and attempt counters without effect.
    #[strum(to_string = "login attempts")]
    Attempts,
    /// Invitations past their expiry, with their drafts.
    Invitations,
    /// Notices older than 90 days.
    Notices,
    /// New TOTP secrets that were not confirmed in time.
    #[strum(to_string = "unconfirmed passcode seeds")]
    PendingSeeds,
    /// Activations past their expiry.
    Activations,
    /// Previous versions of credentials after their retention.
    #[strum(to_string = "previous versions of credentials")]
    PreviousVersions,
    /// Uses of credentials by activations that expired more than [`USE_SECONDS`](crate::credential::USE_SECONDS) ago.
    #[strum(to_string = "uses of credentials")]
    CredentialUses,
    /// Hourly counts of past hours.
    #[strum(to_string = "hourly counts")]
    HourlyCounts,
    /// Credentials, idempotency keys and activations of deleted organizations.
    #[strum(to_string = "rows of deleted organizations")]
    Erasures,
}

named!(Expired);

/// Port for the maintenance of the store.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Deletes at most [`EXPIRED_SLICE`] rows of one kind that are expired at `now`, using an index. Returns the number
    /// of deleted rows. If it is less than a slice, none remain.
    async fn delete_expired(&self, expired: Expired, now: Timestamp) -> Result<usize, StoreError>;

    /// Checks whether the store responds. If it is a server, returns the difference of its clock to `now`, in
    /// milliseconds.
    async fn check(&self, now: Timestamp) -> Result<Option<i64>, StoreError>;

    /// Counts a slice of credentials. The first slice starts with the first credential.
    async fn count_credentials(&self, query: CountCredentials) -> Result<CountedSlice, StoreError>;

    /// Returns the number of reserved uses of the most used active organization key, or 0 if there is none.
    async fn most_key_uses(&self) -> Result<i64, StoreError>;
}
