//! The integration's side: what it asks for, what it gets, and the command that it is for.

pub(crate) mod args;
pub(crate) mod child;
pub(crate) mod choice;
pub(crate) mod door;
pub(crate) mod opened;
pub(crate) mod private_files;
pub(crate) mod signals;
