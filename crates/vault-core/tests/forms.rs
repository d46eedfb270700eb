//! The forms of tools: what they look like, and that no value breaks out of one.

#![cfg_attr(unix, allow(clippy::disallowed_types, reason = "a real shell reads the forms"))]

mod destinations;
mod golden;
mod quoting;
mod samples;
