//! Activations.

pub(crate) mod active;
mod authorize;
mod begin;
mod issue;
