//! `orgvault login` and `orgvault credential`: a client of the HTTP API.

pub(crate) mod args;
pub(crate) mod data;
pub(crate) mod login;
pub(crate) mod prompt;
