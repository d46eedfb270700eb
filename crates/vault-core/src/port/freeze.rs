//! Frozen namespaces in the store.

use super::{IntegrationScope, StoreError};
use crate::audit::SealedAuditRecord;
use crate::id::OrganizationId;
use crate::namespace::Namespace;
use crate::principal::{Denial, Principal};
use crate::time::Timestamp;
use async_trait::async_trait;

/// Freezes a namespace, or thaws it. The namespace need not hold anything yet.
#[derive(Clone, Debug)]
pub struct FreezeNamespace {
    /// By whose order; judged in the decision.
    pub authority: Principal,
    /// The organization.
    pub organization: OrganizationId,
    /// The namespace, compared exactly.
    pub namespace: Namespace,
    /// Whether it is frozen from now on.
    pub frozen: bool,
    /// Now.
    pub now: Timestamp,
    /// The record of it; kept only if something changed.
    pub audit: SealedAuditRecord,
}

/// What freezing or thawing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeOutcome {
    /// Done.
    Changed,
    /// It was so already; nothing was changed.
    Unchanged,
    /// No such organization within the authority's reach.
    NoOrganization,
    /// The session may no longer act. Decided before anything else.
    Refused(Denial),
}

/// A namespace that nothing activates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenNamespace {
    /// The organization.
    pub organization: OrganizationId,
    /// The namespace.
    pub namespace: Namespace,
    /// When it was frozen.
    pub frozen_at: Timestamp,
}

/// Lists frozen namespaces.
#[derive(Clone, Debug)]
pub struct ListFrozen {
    /// Which.
    pub scope: IntegrationScope,
    /// Now.
    pub now: Timestamp,
}

/// Frozen namespaces.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait FreezeRepository: Send + Sync {
    /// Freezes or thaws one. No activation that is decided after it sees the state before.
    async fn freeze_namespace(&self, command: FreezeNamespace) -> Result<FreezeOutcome, StoreError>;

    /// The frozen ones, by organization and namespace.
    async fn list_frozen(&self, query: ListFrozen) -> Result<Result<Vec<FrozenNamespace>, Denial>, StoreError>;
}
