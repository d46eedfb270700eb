//! Servers of external stores for the duration of a test, which leave nothing behind.
//!
//! Each listens on a free port of the loopback address. `tests/run` installs them under `target/tools`; those in `PATH`
//! also work.
//!
//! - [`Moto`]: S3, STS and IAM, which checks signatures and permissions once that is enabled.
//! - [`Azurite`]: Azure Blob.
//! - [`GoogleEmulator`]: Google Cloud Storage, which checks no permissions.
//! - [`ProxyPy`]: an HTTP proxy with `CONNECT` and Basic authentication.
//! - [`TestProxy`]: a proxy that records its tunnels, and fails as a test requires.
//! - [`Scripted`]: responses that a test defines and that none of the others can produce.

mod azurite;
mod google;
mod http;
mod moto;
mod process;
mod proxy;
mod proxy_py;
mod scripted;
mod tools;

pub use azurite::{Azurite, TlsFiles};
pub use google::GoogleEmulator;
pub use http::Reply;
pub use moto::{AccessKey, Moto};
pub use proxy::{ProxyMode, TestProxy, Tunnel};
pub use proxy_py::ProxyPy;
pub use scripted::{Asked, Scripted};
pub use tools::find_tool;

/// Private key of a service account that does not exist, in PEM form: created for tests only.
pub const SERVICE_ACCOUNT_KEY: &str = include_str!("stores/service-account.pem");
