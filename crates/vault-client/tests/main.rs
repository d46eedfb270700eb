//! Tests of the client: one program with a module for each file, so that dependencies are linked only once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod activation;
mod activation_tls;
mod client;
