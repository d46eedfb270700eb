//! Integrations and frozen namespaces.

pub(crate) mod change;
pub(crate) mod freezes;
pub(crate) mod lookup;
pub(crate) mod row;
pub(crate) mod usage;
