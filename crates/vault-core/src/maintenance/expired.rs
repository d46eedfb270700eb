//! Deletion of expired rows.

use crate::operation::{Access, Failure, Operation, Unit};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Maximum number of rows that [`DeleteExpired`] deletes.
pub const EXPIRED_SLICE: usize = 500;
/// Retention of an idempotency key, in seconds: 24 h.
pub const IDEMPOTENCY_SECONDS: i64 = 24 * 3600;

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

/// Deletes at most [`EXPIRED_SLICE`] rows of one kind that are expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteExpired(pub Expired);

impl Operation for DeleteExpired {
    /// The number of deleted rows. If it is less than a slice, none remain.
    type Outcome = usize;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<usize, Failure> {
        let deleted = unit.rows().delete_expired(self.0, unit.now()).await?;
        if deleted > 0 {
            unit.commit_without_entry();
        }
        Ok(deleted)
    }
}
