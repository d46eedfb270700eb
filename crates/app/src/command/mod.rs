//! Implementations of the commands.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod doctor;
pub(crate) mod federation;
pub(crate) mod init;
pub(crate) mod integration;
pub(crate) mod invitation;
pub(crate) mod issuer;
pub(crate) mod key;
pub(crate) mod migrate;
pub(crate) mod migrate_to;
pub(crate) mod namespace;
pub(crate) mod organization;
pub(crate) mod quickstart;
pub(crate) mod receiver;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod target;
pub(crate) mod trust;
