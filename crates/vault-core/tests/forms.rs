//! The forms of tools: what they look like, and that no value breaks out of one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg_attr(unix, allow(clippy::disallowed_types, reason = "a real shell reads the forms"))]

#[path = "forms/golden.rs"]
mod golden;
#[path = "forms/quoting.rs"]
mod quoting;
#[path = "forms/samples.rs"]
mod samples;
