//! Tests with real keys, from outside. One program: each file is a module of it, so nothing is linked more often than it has to be.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod deployment;
mod federation;
mod instance_rotation;
