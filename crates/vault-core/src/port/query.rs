//! What several ports are asked.

use crate::id::OrganizationId;
use crate::principal::{Principal, Scope};
use crate::time::Timestamp;

/// Reads a page of a list.
#[derive(Clone, Debug)]
pub struct List<A, O = Scope> {
    /// Who asks.
    pub principal: Principal,
    /// Whose rows.
    pub of: O,
    /// Those after this one.
    pub after: Option<A>,
    /// At most so many.
    pub limit: usize,
    /// Now.
    pub now: Timestamp,
}

/// Looks for one object.
#[derive(Clone, Debug)]
pub struct Find<K, O = OrganizationId> {
    /// Who asks.
    pub principal: Principal,
    /// Where to look. What lies elsewhere does not exist.
    pub of: O,
    /// By what.
    pub key: K,
    /// Now.
    pub now: Timestamp,
}
