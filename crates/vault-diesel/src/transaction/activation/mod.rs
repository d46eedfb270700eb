//! Activations.

pub(crate) mod activations;
mod authorize;
mod fetch;
mod issue;
