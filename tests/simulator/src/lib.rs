//! The embedded store on a simulated disk. The store is the product's, as the product opens it: SQLite with SQLCipher, a write-ahead
//! log, `synchronous = FULL`, the writer that commits for many. Below it, instead of the operating system's files, lies a disk in
//! memory that keeps what was synced and leaves to chance what else survives when the power is cut.
//!
//! - `disk`: the disk and its failures. `content`: what of a file survives. `vfs`: what SQLite calls. `locks`: its locks.
//! - `world`: the commands. `ledger`: what was acknowledged. `look`: what a database holds.
//! - `play`: one seed. All moments, failures and survivors follow from it; SQLite's and SQLCipher's random bytes do not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a seed ends where its rig fails")]

#[path = "../../faults/chance.rs"]
#[allow(dead_code, reason = "the program of the faults uses more of it")]
mod chance;
mod content;
mod disk;
mod ledger;
mod locks;
mod look;
mod play;
mod vfs;
mod world;

pub use disk::Lie;
pub use play::{Ground, Outcome, Planted, play};
