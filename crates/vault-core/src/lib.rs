//! The domain of OrgVault: credentials, authorization, and the implementation of each operation.
//!
//! This crate contains no HTTP, SQL, ciphers, files or clocks. It declares its requirements as traits (ports), which
//! adapters implement: `vault-diesel`, `vault-crypto`, `vault-storage`, or your own. `vault-embed` opens a vault with
//! the first two.
//!
//! ```
//! use vault_core::credential::{CredentialData, CredentialType};
//! use vault_core::{Error, ErrorKind};
//!
//! # fn main() -> Result<(), Error> {
//! let body = br#"{"url": "https://files.example/nightly.bin"}"#; // body of a request
//! let data = CredentialData::from_json(CredentialType::DirectLink, body)?;
//! assert_eq!(data.kind(), CredentialType::DirectLink);
//!
//! // Each error names its field and never contains the value.
//! let refused = CredentialData::from_json(CredentialType::DirectLink, br#"{"url": 7}"#);
//! let error = refused.unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Invalid);
//! assert!(matches!(error, Error::Invalid(violations) if violations[0].pointer == "/url"));
//! # Ok(())
//! # }
//! ```
//!
//! # Getting started
//!
//! | To | See |
//! |---|---|
//! | call operations: save, list, log in, activate | the contexts in [`usecase`], first [`usecase::Vault`] |
//! | identify the caller | [`principal::Principal`] |
//! | parse a credential in a request | [`credential::CredentialData::from_json`] |
//! | handle errors | [`Error::kind`] |
//! | use your own database | [`port`], first [`port::Rows`]; verify it with `vault_testkit::contract` |
//! | test your service | `vault_testkit::fake::FakeVault`: all contexts, without files, databases and ciphers |
//!
//! Each of the other modules contains the types of one subject, with its rules as pure functions: [`lockout`],
//! [`integration`], [`audit`] and others. For a tutorial, see `docs/EMBEDDING.md` in the repository.

#[macro_use]
mod named;

pub mod account;
pub mod activation;
pub mod audit;
pub mod check;
pub mod command;
pub mod credential;
pub mod credential_counts;
pub mod cursor;
pub mod digest;
pub mod email;
pub mod enrolment;
pub mod entity;
pub mod error;
pub mod federation;
pub mod field;
pub mod hash_slots;
pub mod hourly;
pub mod id;
pub mod identity;
pub mod inspect;
pub mod integration;
pub mod invitation;
pub mod json;
pub mod keyring;
pub mod lockout;
pub mod login;
pub mod maintenance;
pub mod namespace;
pub mod network;
pub mod notice;
pub mod operation;
pub mod organization;
pub mod passcode;
pub mod password;
pub mod port;
pub mod principal;
pub mod receiver;
pub mod rhythm;
pub mod role;
pub mod sealed;
pub mod session;
mod strict_url;
pub mod time;
pub mod trace;
pub mod usecase;

pub use command::Command;
pub use error::{Error, ErrorKind, Refusal};
