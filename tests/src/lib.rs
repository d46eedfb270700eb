//! Common parts of the tests that run the real `orgvault` binary on real ports and both databases. The test cases are
//! in `tests/`, one file per subject. Names of attack tests contain the number of the attack.
//!
//! - [`vault`]: a vault per test: data directory, database, servers, commands.
//! - [`account`]: accounts, their passcodes and sessions.
//! - [`client`]: an ordinary HTTP client. [`wire`]: raw bytes on a socket, for requests that no ordinary client sends.
//! - [`tls`]: certificates, and servers with TLS.
//! - [`samples`]: credentials of every type. [`canary`]: search for secrets in all encodings.
//! - [`integration`]: integrations and the activation listener. [`desk`]: a user who runs commands with a login.
//! - [`policy`]: the authorization table.
//! - [`browser`]: a headless browser.
//! - [`receivers`]: webhook and mail servers. [`providers`]: storage providers with keyless access.
//! - [`script`]: servers and clients in Python, for both.
//! - [`machine`]: the environment of a measurement.
//! - [`options`]: command-line options of the load and fault programs.
//! - [`disk`]: a small file system, and filling it. [`mod@skip`]: tests that cannot run on this machine.
//! - [`earlier`]: vaults of earlier versions.
//! - [`database`]: runs a test on both databases. [`sql`]: access to the rows on PostgreSQL.

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
pub mod desk;
pub mod disk;
pub mod earlier;
pub mod integration;
pub mod issuer;
pub mod machine;
pub mod options;
pub mod passcode;
pub mod policy;
pub mod process;
pub mod providers;
pub mod receivers;
pub mod samples;
pub mod script;
pub mod skip;
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
pub use desk::Desk;
pub use integration::{ActivationListener, Integration};
pub use vault::Vault;
