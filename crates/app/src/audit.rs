//! The audit log outside the vault: its delivery and its retention.

mod retention;
mod sink;

pub(crate) use retention::{DELIVERED, WAITING, start};
