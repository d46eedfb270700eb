//! Maintenance, and what a restore ends.

mod credential_counts;
pub(crate) mod expired;
pub(crate) mod repository;
mod restore;

/// [`EXPIRED_SLICE`](vault_core::port::EXPIRED_SLICE) as a query's limit.
pub(crate) const SLICE: i64 = vault_core::port::EXPIRED_SLICE as i64;
