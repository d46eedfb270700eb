//! Tests against emulated stores. One program: each file is a module of it, so nothing is linked more often than it has to be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod anything;
mod azure;
mod federation;
mod gcs;
mod issuer;
mod link;
mod proxy;
mod s3;
mod support;
