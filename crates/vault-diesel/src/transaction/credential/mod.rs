//! Credentials.

pub(crate) mod list;
pub(crate) mod row;
pub(crate) mod versions;
