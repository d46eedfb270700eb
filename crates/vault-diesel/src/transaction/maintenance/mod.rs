//! Maintenance of all organizations.

pub(crate) mod credential_counts;
pub(crate) mod expiry;
pub(crate) mod health;
pub(crate) mod restore;
