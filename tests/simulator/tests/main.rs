//! Tests of the embedded store on a simulated disk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod power_cuts;
