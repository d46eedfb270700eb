//! The ports, and the transactions that are still compiled once per database. The files of this folder name the database only
//! through `backend`, which each database supplies. [`crate::transaction`] has the transactions that are compiled once, and
//! the order of locks.

mod account;
mod activation;
mod audit;
mod credential;
mod inspection;
mod integration;
mod issuers;
mod maintenance;
mod organization;
mod receiver;
mod schema_version;

use super::backend;

pub(crate) use crate::transaction::{Decided, Verdict};
