//! Servers of outside stores that live as long as a test and leave nothing behind.
//!
//! Each listens on a free port of the loopback address. `tests/run` installs them under `target/tools`; those found in
//! `PATH` do too.
//!
//! - [`Moto`]: S3, STS and IAM, which judges signatures and rights once it is told to.
//! - [`Azurite`]: Azure Blob.
//! - [`GoogleEmulator`]: Google Cloud Storage, which judges nothing.
//! - [`SoftHsm`]: PKCS#11 tokens; no server, and Debian's package rather than one under `target/tools`.
//! - [`Scripted`]: whatever a test says, for what none of them can be made to answer.

mod azurite;
mod google;
mod http;
mod moto;
mod process;
mod scripted;
mod softhsm;
mod tools;

pub use azurite::{Azurite, TlsFiles};
pub use google::GoogleEmulator;
pub use http::Reply;
pub use moto::{AccessKey, Moto};
pub use scripted::{Asked, Scripted};
pub use softhsm::SoftHsm;
pub use tools::find_tool;

/// The private key of a service account that exists nowhere, in PEM form: made for tests, and nobody trusts it.
pub const SERVICE_ACCOUNT_KEY: &str = include_str!("stores/service-account.pem");
