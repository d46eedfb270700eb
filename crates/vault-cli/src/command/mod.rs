//! Implementations of the commands of clients.

pub mod activate;
mod check;
pub mod credential;
pub mod enrol;
pub mod exec;
pub mod identity;
pub mod import;
pub mod login;
pub mod manifest;
mod several;
