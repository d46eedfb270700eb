//! Queries that several ports share.

use crate::id::OrganizationId;
use crate::principal::{Principal, Scope};
use crate::time::Timestamp;

/// Query for one page of a list.
#[derive(Clone, Debug)]
pub struct List<A, O = Scope> {
    /// Principal that makes the request.
    pub principal: Principal,
    /// Scope or object whose rows are listed.
    pub of: O,
    /// Position after which the page starts. With `None`, it starts at the first row.
    pub after: Option<A>,
    /// Largest number of rows in the page.
    pub limit: usize,
    /// Current time.
    pub now: Timestamp,
}

/// Query for one object.
#[derive(Clone, Debug)]
pub struct Find<K, O = OrganizationId> {
    /// Principal that makes the request.
    pub principal: Principal,
    /// Scope of the search. Objects outside it are treated as missing.
    pub of: O,
    /// Key of the object.
    pub key: K,
    /// Current time.
    pub now: Timestamp,
}
