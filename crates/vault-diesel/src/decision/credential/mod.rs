//! Credentials.

pub(crate) mod count;
pub(crate) mod credentials;
mod versions;
