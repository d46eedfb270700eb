//! Organizations, their keys, and the keys of the instance.

pub(crate) mod erasure;
pub(crate) mod keys;
pub(crate) mod organizations;
