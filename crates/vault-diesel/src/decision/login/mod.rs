//! Attempts, proofs and sessions.

pub(crate) mod attempts;
pub(crate) mod decoys;
pub(crate) mod logins;
pub(crate) mod proof;
pub(crate) mod sessions;
