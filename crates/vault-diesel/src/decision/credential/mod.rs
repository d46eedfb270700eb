//! Credentials.

mod change;
pub(crate) mod checks;
pub(crate) mod count;
pub(crate) mod credentials;
mod delete;
pub(super) mod labels;
pub(crate) mod row;
mod save;
pub(crate) mod uses;
pub(crate) mod versions;
