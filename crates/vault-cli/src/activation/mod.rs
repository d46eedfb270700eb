//! The activation process: requests, received credentials, and the command that uses them.

pub mod args;
mod aws_settings;
pub mod child;
pub(crate) mod choice;
pub(crate) mod endpoint;
pub(crate) mod identity;
pub(crate) mod life;
pub(crate) mod listener;
pub(crate) mod names;
mod no_proxy;
pub(crate) mod opened;
pub(crate) mod private_files;
pub(crate) mod renewal;
pub(crate) mod signals;
pub(crate) mod supply;
