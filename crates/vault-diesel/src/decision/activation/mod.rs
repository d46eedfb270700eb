//! Activations.

pub(crate) mod activations;
pub(crate) mod activator;
pub(crate) mod hand_out;
pub(crate) mod take;
