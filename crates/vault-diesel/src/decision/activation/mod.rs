//! Activations.

pub(crate) mod activations;
pub(crate) mod activator;
pub(crate) mod take;
