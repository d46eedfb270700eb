//! Organizations and keys.

pub(crate) mod erasure;
pub(crate) mod keys;
pub(crate) mod organizations;
mod instance_rotation;
mod rotation;
