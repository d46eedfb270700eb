//! Housekeeping.

pub(crate) mod housekeeping;
pub(crate) mod sweep;
