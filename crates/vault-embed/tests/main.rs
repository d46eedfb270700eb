//! Tests of opening a vault: one program with a module for each file, so that dependencies are linked only once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod backups;
mod opening;
mod root_rotation;
mod tampering;
