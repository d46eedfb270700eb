//! What keeps the store small and tells whether it is there.

use super::StoreError;
use crate::time::Timestamp;
use async_trait::async_trait;

/// How many rows of each table one sweep deletes at most.
pub const SWEEP_SLICE: i64 = 500;
/// How long an idempotency key is kept, in seconds: 24 h.
pub const IDEMPOTENCY_SECONDS: i64 = 24 * 3600;

/// How many rows a sweep deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Expired sessions.
    pub sessions: usize,
    /// Idempotency keys past their day.
    pub idempotency_keys: usize,
    /// Networks no longer known, and attempt counters that no longer say anything.
    pub attempts: usize,
    /// Invitations that are over, their directory entries with them.
    pub invitations: usize,
    /// Notices past their 90 days.
    pub notices: usize,
    /// New passcode seeds that nobody confirmed in time.
    pub pending_seeds: usize,
    /// Activations that are over.
    pub activations: usize,
}

/// Upkeep of the store.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Housekeeping: Send + Sync {
    /// Deletes up to [`SWEEP_SLICE`] expired rows of each kind.
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError>;

    /// Whether the store answers and, where it is a server, how far its clock lies from `now`, in milliseconds.
    async fn check(&self, now: Timestamp) -> Result<Option<i64>, StoreError>;
}
