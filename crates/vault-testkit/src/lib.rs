//! For tests of OrgVault and of services that embed `vault-core`; never for production.
//!
//! ```
//! use vault_core::principal::Principal;
//! use vault_core::{ErrorKind, id::AccountId, port::StoreError, role::Role};
//! use vault_testkit::fake::FakeVault;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let fake = FakeVault::new(); // all contexts, without files, databases and ciphers
//! let acme = fake.operator().ensure_organization("acme").await?;
//! let who = Principal::embedder(acme.id, AccountId::from_bytes([1; 16]), Role::Viewer);
//! assert!(fake.vault().list(&who, Default::default(), Default::default()).await?.items.is_empty());
//!
//! // What your service does when the database is down:
//! fake.store.fail_next(StoreError::Unavailable("it is down".into()));
//! let error = fake.vault().list(&who, Default::default(), Default::default()).await.unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Retry);
//! # Ok::<(), vault_core::Error>(())
//! # }).unwrap();
//! ```
//!
//! To test your own store with one macro, see [`contract`].
//!
//! - [`clock`]: a clock that tests set, deterministic IDs and randomness, and an event sink that records events.
//! - [`commands`]: operations whose parts a test has made itself.
//! - [`fake`]: a vault with all of these, from one constructor.
//! - [`memory`]: every store port in memory, under one lock, by the rules of `vault-core`.
//! - [`crypto`]: every crypto port, readable and insecure by design.
//! - [`faulty`]: a store around any other that fails, blocks and returns wrong results on purpose.
//! - [`storage`]: fake storage providers, without any server.
//! - [`strategy`]: values for property tests.
//! - [`contract`]: the requirements on every implementation of the store ports, as cases to run on it.
//!
//! The feature `servers` is for the tests of the repository itself. It adds `postgres` and `stores`, servers that run
//! as long as a test, `seed`, the seeds of the fuzz targets, and `page`, tables of the documentation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking; this crate is used by tests alone"
)]

pub mod clock;
pub mod commands;
pub mod contract;
pub mod crypto;
pub mod fake;
pub mod faulty;
pub mod memory;
#[cfg(feature = "servers")]
pub mod page;
#[cfg(all(unix, feature = "servers"))]
pub mod postgres;
#[cfg(feature = "servers")]
pub mod seed;
pub mod storage;
#[cfg(all(unix, feature = "servers"))]
pub mod stores;
pub mod strategy;
