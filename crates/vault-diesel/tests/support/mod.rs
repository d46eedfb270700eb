//! Support for the tests.

pub(crate) mod activators;
pub(crate) mod plans;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod subject;
pub(crate) mod world;

use vault_core::time::Timestamp;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
