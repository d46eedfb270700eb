//! What the tests share. Each test program uses its part.

#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod activators;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod world;

use vault_core::time::Timestamp;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
