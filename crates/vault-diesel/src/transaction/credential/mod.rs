//! Credentials.

pub(crate) mod apply;
pub(crate) mod checks;
pub(crate) mod count;
pub(crate) mod labels;
pub(crate) mod list;
pub(crate) mod rotation;
pub(crate) mod row;
pub(crate) mod save;
pub(crate) mod sealed;
pub(crate) mod versions;
