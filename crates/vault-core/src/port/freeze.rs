//! Namespaces in the store: what they hold, and whether they are frozen.

use super::{List, NamePosition, StoreError};
use crate::command::Command;
use crate::id::OrganizationId;
use crate::namespace::Namespace;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Counts of a namespace's credentials stop here.
pub const NAMESPACE_COUNT_LIMIT: i64 = 1_000;

/// Freezes a namespace, or thaws it. The namespace need not have credentials.
#[derive(Clone, Debug)]
pub struct FreezeNamespace {
    /// The organization.
    pub organization: OrganizationId,
    /// The namespace, compared exactly.
    pub namespace: Namespace,
    /// Whether it is frozen from now on.
    pub frozen: bool,
}

/// What freezing or thawing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freezing {
    /// Whether it was otherwise before. If not, nothing was changed or recorded.
    pub changed: bool,
    /// How many credentials the namespace has; counted to [`NAMESPACE_COUNT_LIMIT`].
    pub credentials: i64,
    /// How many integrations may activate it while it is not frozen: disabled and expired ones may not.
    pub integrations: i64,
}

/// A namespace that nothing can activate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenNamespace {
    /// The organization.
    pub organization: OrganizationId,
    /// The namespace.
    pub namespace: Namespace,
    /// When it was frozen.
    pub frozen_at: Timestamp,
}

/// A namespace that has credentials or is frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedNamespace {
    /// The namespace.
    pub namespace: Namespace,
    /// How many credentials it has; counted to [`NAMESPACE_COUNT_LIMIT`].
    pub credentials: i64,
    /// When it was frozen, if it is.
    pub frozen_at: Option<Timestamp>,
}

/// Namespaces. Every method refuses a principal that may no longer act ([`StoreError::Denied`]), in the same
/// transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait FreezeRepository: Send + Sync {
    /// Freezes or thaws one. An activation that is decided after it is decided on the new state. `None`: the
    /// principal reaches no such organization.
    async fn freeze_namespace(&self, command: Command<FreezeNamespace>) -> Result<Option<Freezing>, StoreError>;

    /// Reads a page of the frozen ones, ordered by organization and namespace.
    async fn list_frozen(&self, query: List<NamePosition>) -> Result<Vec<FrozenNamespace>, StoreError>;

    /// Reads a page of those that have credentials or are frozen, ordered by namespace.
    async fn list_namespaces(&self, query: List<Namespace, OrganizationId>)
    -> Result<Vec<ListedNamespace>, StoreError>;
}
