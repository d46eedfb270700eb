//! Maintenance of all organizations.

pub(crate) mod credential_counts;
pub(crate) mod expiry;
pub(crate) mod restore;
pub(crate) mod space;
