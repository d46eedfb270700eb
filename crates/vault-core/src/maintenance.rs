//! Maintenance of the store: deletion of expired rows, counts for metrics, health, and the end of a restore.

mod count;
mod expired;
mod health;
mod restore;

pub use count::{COUNT_SLICE, CountCredentials, CountedSlice, ReadMostKeyUses};
pub use expired::{DeleteExpired, EXPIRED_SLICE, Expired, IDEMPOTENCY_SECONDS};
pub use health::{CheckStore, ProveSpace};
pub use restore::{FinishRestore, Settled};
