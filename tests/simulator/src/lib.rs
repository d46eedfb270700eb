//! The embedded store on a simulated disk. The store is configured as in the product: SQLite with SQLCipher, a
//! write-ahead log, `synchronous = FULL`, and a writer that commits for many requests. Its files are on a disk in
//! memory. Synced data survives a power cut. Whether unsynced data survives is random.
//!
//! - [`simulated_disk`]: the disk and its failures.
//! - `world`: the commands. `ledger`: the acknowledged writes. `look`: reads the content of a database.
//! - `play`: plays one seed. The seed determines all moments, failures and survivors, but not the random bytes of
//!   SQLite and SQLCipher.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a seed ends where its rig fails")]

mod ledger;
mod look;
mod play;
mod world;

pub use play::{Ground, Outcome, Planted, play};
pub use simulated_disk::disk::Lie;
