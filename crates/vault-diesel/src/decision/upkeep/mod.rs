//! Housekeeping, and what a restore ends.

pub(crate) mod housekeeping;
mod restore;
mod stock;
pub(crate) mod sweep;

/// [`SWEEP_SLICE`](vault_core::port::SWEEP_SLICE) as a query's limit.
pub(crate) const SLICE: i64 = vault_core::port::SWEEP_SLICE as i64;
