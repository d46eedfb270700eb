//! Credentials.

pub(crate) mod checks;
pub(crate) mod count;
pub(crate) mod credentials;
pub(super) mod labels;
mod list;
pub(crate) mod row;
pub(crate) mod uses;
pub(crate) mod versions;
