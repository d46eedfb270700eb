//! A disk in memory that loses power, and SQLite's interface to it. Optimized also in tests, because it copies every byte
//! that SQLite writes.
//!
//! [`disk`]: the disk and its failures. `content`: the surviving content of a file. [`vfs`]: the functions that SQLite
//! calls. `locks`: file locks. [`random`]: random numbers that a seed determines.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a seed ends where its rig fails")]

mod content;
pub mod disk;
mod locks;
pub mod random;
pub mod vfs;
