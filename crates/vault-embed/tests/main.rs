//! Tests of opening a vault. One program: each file is a module of it, so nothing is linked more often than it has to be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod backups;
mod opening;
mod root_rotation;
