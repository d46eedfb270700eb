//! Credentials.

mod change;
pub(crate) mod credentials;
mod delete;
pub(crate) mod row;
mod save;
pub(crate) mod versions;
