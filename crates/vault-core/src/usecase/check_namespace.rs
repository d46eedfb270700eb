//! The dry run: try a namespace's credentials out on their stores, without handing anything out.

use super::open_namespace::{Opened, Opening};
use super::together::{AT_ONCE, Pending, together};
use super::{OpenNamespace, OpenNamespaceError};
use crate::check::{Check, CheckKind, CheckReason, CheckReport, StorageOperation, StorageReach, judge_locally, reach};
use crate::credential::{CredentialData, CredentialType};
use crate::id::CredentialId;
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::port::{ProbeRequest, StorageProbe};
use crate::time::Timestamp;
use std::sync::Arc;

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct CheckNamespaceRequest {
    /// The namespace.
    pub namespace: Namespace,
    /// The operations that the job needs. None at all: only whether each store knows its credential.
    pub operations: Vec<StorageOperation>,
    /// When the job will be done.
    pub until: Option<Timestamp>,
}

/// What was found of one credential.
#[derive(Clone, Debug)]
pub struct CheckedCredential {
    /// The credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// The checks.
    pub report: CheckReport,
}

/// What was found of a namespace.
#[derive(Clone, Debug)]
pub struct CheckedNamespace {
    /// The namespace.
    pub namespace: Namespace,
    /// Its credentials, oldest first.
    pub credentials: Vec<CheckedCredential>,
}

impl CheckedNamespace {
    /// Whether every credential can be used.
    pub fn is_usable(&self) -> bool {
        self.credentials.iter().all(|credential| credential.report.is_usable())
    }
}

/// The ports of the dry run.
pub struct CheckNamespace {
    /// Opens namespaces.
    pub open: OpenNamespace,
    /// Reaches stores, where something here does.
    pub probe: Option<Arc<dyn StorageProbe>>,
}

impl CheckNamespace {
    /// Tries every credential out. Judged and recorded as an activation is, but begins none.
    ///
    /// # Errors
    /// See [`OpenNamespaceError`]; what is wrong with a credential is in its report.
    pub async fn run(
        &self,
        principal: &IntegrationPrincipal,
        request: CheckNamespaceRequest,
    ) -> Result<CheckedNamespace, OpenNamespaceError> {
        let CheckNamespaceRequest { namespace, operations, until } = request;
        let opening = Opening { namespace, purpose: None, activation: None };
        let opened = self.open.run(principal, &opening).await?;
        let probing = ProbeRequest { operations, until, now: self.open.ambient.now() };
        let mut credentials = Vec::with_capacity(opened.len());
        for some in opened.chunks(AT_ONCE) {
            let checking: Vec<Pending<'_, _>> =
                some.iter().map(|one| Box::pin(self.check(one, &probing)) as Pending<'_, _>).collect();
            credentials.extend(together(checking).await);
        }
        Ok(CheckedNamespace { namespace: opening.namespace, credentials })
    }

    async fn check(&self, opened: &Opened, probing: &ProbeRequest) -> CheckedCredential {
        let report = check(self.probe.as_deref(), &opened.data, probing).await;
        CheckedCredential { id: opened.id, kind: opened.data.kind(), report }
    }
}

/// What can be told of `data` here, and by its store.
pub(super) async fn check(
    probe: Option<&dyn StorageProbe>,
    data: &CredentialData,
    probing: &ProbeRequest,
) -> CheckReport {
    let local = judge_locally(data, probing.until, probing.now);
    let skipped = |reason| CheckReport { checks: vec![Check::skipped(CheckKind::Authenticate, reason)] };
    let asked = match (reach(&local), probe) {
        (StorageReach::Spare, _) => skipped(CheckReason::EarlierFailed),
        (StorageReach::Ask, None) => skipped(CheckReason::NotConfigured),
        (StorageReach::Ask, Some(probe)) => probe.check(data, probing.clone()).await,
    };
    local.and(asked)
}
