//! The embedded store on a simulated disk. The store is configured as in the product: SQLite with SQLCipher, a
//! write-ahead log, `synchronous = FULL`, and a writer that commits for many requests. Its files are on a disk in
//! memory. Synced data survives a power cut. Whether unsynced data survives is random.
//!
//! - `disk`: the disk and its failures. `content`: the surviving content of a file. `vfs`: the functions that SQLite
//!   calls. `locks`: file locks.
//! - `world`: the commands. `ledger`: the acknowledged writes. `look`: reads the content of a database.
//! - `play`: plays one seed. The seed determines all moments, failures and survivors, but not the random bytes of
//!   SQLite and SQLCipher.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a seed ends where its rig fails")]

mod content;
mod disk;
mod ledger;
mod locks;
mod look;
mod play;
#[path = "../../faults/random.rs"]
#[allow(dead_code, reason = "the program of the faults uses more of it")]
mod random;
mod vfs;
mod world;

pub use disk::Lie;
pub use play::{Ground, Outcome, Planted, play};
