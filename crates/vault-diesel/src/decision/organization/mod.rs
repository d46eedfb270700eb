//! Organizations and keys.

pub(crate) mod erasure;
mod instance_rotation;
pub(crate) mod keys;
pub(crate) mod organizations;
mod rotation;
