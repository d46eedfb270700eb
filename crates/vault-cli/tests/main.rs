//! The formats of tools: what they look like, and that no value breaks out of one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![cfg_attr(unix, allow(clippy::disallowed_types, reason = "a real shell reads the forms"))]

mod destinations;
mod golden;
mod names;
mod quoting;
mod samples;
