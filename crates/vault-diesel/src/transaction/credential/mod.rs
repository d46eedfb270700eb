//! Credentials.

pub(crate) mod count;
pub(crate) mod labels;
pub(crate) mod list;
pub(crate) mod row;
pub(crate) mod uses;
pub(crate) mod versions;
