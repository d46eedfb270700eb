//! Organizations, their keys, and the keys of the instance.

pub(crate) mod erasure;
pub(crate) mod key_columns;
pub(crate) mod keys;
