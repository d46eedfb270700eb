//! Integrations and frozen namespaces.

pub(crate) mod freezes;
pub(crate) mod integrations;
pub(crate) mod lookup;
pub(crate) mod row;
