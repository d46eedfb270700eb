//! Store port for namespaces: their credential counts, and whether they are frozen.

use super::{List, NamePosition, StoreError};
use crate::command::Command;
use crate::id::OrganizationId;
use crate::namespace::Namespace;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Largest number to which the credentials of a namespace are counted.
pub const NAMESPACE_COUNT_LIMIT: i64 = 1_000;

/// Command that freezes or unfreezes a namespace. The namespace may be empty.
#[derive(Clone, Debug)]
pub struct FreezeNamespace {
    /// Organization of the namespace.
    pub organization: OrganizationId,
    /// Namespace to change, compared exactly.
    pub namespace: Namespace,
    /// Whether the namespace is frozen after the change.
    pub frozen: bool,
}

/// Result of freezing or unfreezing a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freezing {
    /// Whether the state changed. If it did not, nothing was written or recorded.
    pub changed: bool,
    /// Number of credentials in the namespace, counted up to [`NAMESPACE_COUNT_LIMIT`].
    pub credentials: i64,
    /// Number of integrations that may activate the namespace while it is not frozen, without disabled and expired ones.
    pub integrations: i64,
}

/// Frozen namespace: no integration can activate it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenNamespace {
    /// Organization of the namespace.
    pub organization: OrganizationId,
    /// Frozen namespace, unique in its organization.
    pub namespace: Namespace,
    /// Time at which the namespace was frozen.
    pub frozen_at: Timestamp,
}

/// Namespace that has credentials or is frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedNamespace {
    /// Namespace, unique in its organization.
    pub namespace: Namespace,
    /// Number of credentials in the namespace, counted up to [`NAMESPACE_COUNT_LIMIT`].
    pub credentials: i64,
    /// Time at which the namespace was frozen, if it is frozen.
    pub frozen_at: Option<Timestamp>,
}

/// Repository of namespaces. Every method authorizes the principal in its own transaction, and returns
/// [`StoreError::Denied`] if the principal is no longer authorized.
#[async_trait]
pub trait FreezeRepository: Send + Sync {
    /// Freezes or unfreezes a namespace. Activations that are decided afterwards use the new state. Returns `None` if the
    /// principal has no access to such an organization.
    async fn freeze_namespace(&self, command: Command<FreezeNamespace>) -> Result<Option<Freezing>, StoreError>;

    /// Lists a page of the frozen namespaces, ordered by organization and namespace.
    async fn list_frozen(&self, query: List<NamePosition>) -> Result<Vec<FrozenNamespace>, StoreError>;

    /// Lists a page of the namespaces that have credentials or are frozen, ordered by namespace.
    async fn list_namespaces(&self, query: List<Namespace, OrganizationId>)
    -> Result<Vec<ListedNamespace>, StoreError>;
}
