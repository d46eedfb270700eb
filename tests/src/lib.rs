//! Tests of the real `orgvault` binary, on a real port, on both databases: what they share. The cases lie in
//! `tests/`, one file per subject; attack cases bear the number of their case in their name.
//!
//! - [`vault`]: a vault of one test's own: data directory, database, servers, commands.
//! - [`account`]: its accounts, their passcodes, their sessions.
//! - [`client`]: an ordinary HTTP client. [`wire`]: bytes on a socket, for what no ordinary client sends.
//! - [`tls`]: certificates, and servers over TLS.
//! - [`samples`]: credentials of every type. [`canary`]: secrets to search for, however they are written.
//! - [`integration`]: integrations and the door they activate namespaces at.
//! - [`policy`]: who may do what.
//! - [`browser`]: a real browser.
//! - [`receivers`]: servers of webhooks and mail.
//! - [`machine`]: where and when something was measured.
//! - [`options`]: command-line options of the load and the fault program.
//! - [`disk`]: a small disk, and filling it.
//! - [`earlier`]: vaults of earlier versions.
//! - [`database`]: runs a case on both databases. [`sql`]: looks behind the interface, on PostgreSQL.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking; this crate is used by tests alone"
)]

pub mod account;
pub mod answer;
pub mod binary;
pub mod browser;
pub mod canary;
pub mod client;
pub mod database;
pub mod disk;
pub mod earlier;
pub mod integration;
pub mod issuer;
pub mod machine;
pub mod options;
pub mod passcode;
pub mod policy;
pub mod process;
pub mod receivers;
pub mod samples;
pub mod snapshot;
pub mod sql;
pub mod terminal;
pub mod tls;
pub mod vault;
pub mod wire;

pub use account::{Account, Session};
pub use answer::Answer;
pub use client::Client;
pub use database::Database;
pub use integration::{Door, Integration};
pub use vault::Vault;
