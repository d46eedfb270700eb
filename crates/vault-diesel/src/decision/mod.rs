//! Every decision of the store ports, written once and compiled once per database: the files of this folder
//! name the database only through `backend`, which each database supplies.
//!
//! A decision reads and locks what it relies on, asks the domain's pure rule, and writes. It runs in one
//! transaction that its store opens and ends; run again on the same facts it comes to the same verdict.
//!
//! Locks are taken in one order everywhere: credential count, organization, accounts (by id, where several),
//! sessions (likewise), organization key, invitation, integrations (by id); then what hangs on the account, the
//! invitation or the integration.

mod account_change;
mod account_lookup;
mod accounts;
mod activations;
mod activator;
mod admins;
mod attempts;
mod audit;
mod count;
mod credentials;
mod directory;
mod enrolment;
mod erasure;
mod freezes;
mod housekeeping;
mod integration_lookup;
mod integration_row;
mod integrations;
mod invitation_row;
mod invitations;
mod keys;
mod logins;
mod notices;
mod organizations;
mod own_account;
mod pending_seed;
mod proof;
mod schema_version;
mod sessions;
mod standing;
mod sweep;
mod take;

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
