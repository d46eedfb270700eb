//! Commands of jobs, against a fake listener.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub, reason = "a test fails by panicking")]

mod exec;
mod support;
