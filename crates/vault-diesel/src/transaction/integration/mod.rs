//! Integrations.

pub(crate) mod change;
pub(crate) mod lookup;
pub(crate) mod row;
pub(crate) mod usage;
