//! `orgvault login` and `orgvault credential`: a client of the HTTP API.

pub mod args;
pub mod data;
pub mod login;
pub mod prompt;

/// Name of the integration that `quickstart` creates for the jobs of its user.
pub const QUICKSTART: &str = "quickstart";
