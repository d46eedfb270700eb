//! Every decision of the store ports, written once and compiled once per database: the files of this folder
//! name the database only through `backend`, which each database supplies.
//!
//! A decision reads and locks what it relies on, asks the domain's pure rule, and writes. It runs in one
//! transaction that its store opens and ends; run again on the same facts it comes to the same verdict.
//!
//! Locks are taken in one order everywhere: credential count, organization, account, session, organization
//! key; then what hangs on the account.

mod account_change;
mod accounts;
mod attempts;
mod audit;
mod count;
mod credentials;
mod erasure;
mod housekeeping;
mod keys;
mod logins;
mod organizations;
mod schema_version;
mod sessions;
mod standing;

use super::backend;
use crate::failure::Failure;

/// What a decision came to, and whether what it wrote stands.
#[derive(Debug)]
pub(crate) enum Verdict<T> {
    /// It stands.
    Keep(T),
    /// It is undone: as decided, nothing was changed.
    Undo(T),
}

/// A decision that writes, or why it could not be made.
pub(crate) type Decided<T> = Result<Verdict<T>, Failure>;
