//! The domain of OrgVault: what a credential is, who may do what with it, and how each operation proceeds.
//!
//! This crate contains no HTTP, SQL, ciphers, files or clocks. It declares what it needs as traits in [`port`]; adapters
//! implement them. The operations are methods of the contexts in [`usecase`]. Rules are pure functions in the module of the type they govern.

pub mod account;
pub mod activation;
pub mod audit;
pub mod check;
pub mod command;
pub mod credential;
pub mod cursor;
pub mod digest;
pub mod email;
pub mod enrolment;
pub mod error;
pub mod field;
pub mod hourly;
pub mod id;
pub mod integration;
pub mod invitation;
pub mod json;
pub mod key_use;
pub mod lockout;
pub mod namespace;
pub mod network;
pub mod notice;
pub mod organization;
pub mod passcode;
pub mod password;
pub mod port;
pub mod principal;
pub mod proof;
pub mod role;
pub mod sealed;
pub mod seats;
pub mod session;
pub mod stock;
pub mod time;
pub mod trace;
pub mod usecase;

pub use command::Command;
pub use error::{Error, ErrorKind, Refusal};
