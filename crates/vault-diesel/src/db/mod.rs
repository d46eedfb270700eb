//! One Diesel backend for both databases: a query is compiled once, and its text is rendered in the dialect of the
//! connection that executes it.
//!
//! [`Db`] is the backend, [`Tx`] an open transaction on either connection. Queries use Diesel as its documentation teaches
//! it. The dialects differ in row locks, array parameters, planner hints and `LIMIT`; each difference is one fragment in
//! [`fragments`].

mod backend;
mod bind;
mod fragments;
mod insert;
mod parts;
mod row;
pub(crate) mod script;
mod statement;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
mod tx;
mod value;

pub(crate) use backend::Db;
pub(crate) use fragments::{KeyShare, Update, exists_row_by_row, locked, narrow, without_index};
pub(crate) use insert::Pending;
pub(crate) use parts::Parts;
pub(crate) use tx::{OpenTx, Reply, Tx};
pub(crate) use value::DbValue;
