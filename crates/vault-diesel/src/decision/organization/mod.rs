//! Organizations and keys.

pub(crate) mod erasure;
pub(super) mod instance_rotation;
pub(crate) mod keys;
pub(crate) mod organizations;
mod rotation;
