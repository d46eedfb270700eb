//! Freeze a namespace, so that nothing activates it; thaw it; list what is frozen.

use super::list_integrations::permits;
use super::{Administrator, AdministratorError, Ambient};
use crate::audit::{Actor, AuditAction, AuditNote, Subject};
use crate::namespace::Namespace;
use crate::port::{
    FreezeNamespace, FreezeOutcome, FreezeRepository, FrozenNamespace, IntegrationScope, ListFrozen,
    OrganizationRepository, StoreError,
};
use crate::principal::Denial;
use std::sync::Arc;

/// Why nothing was frozen, thawed or listed.
#[derive(Debug, thiserror::Error)]
pub enum FreezeNamespaceError {
    /// Who asks may not, or not there.
    #[error(transparent)]
    Administrator(#[from] AdministratorError),
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Freezes and thaws namespaces.
pub struct FreezeNamespaceUseCase {
    ambient: Ambient,
    organizations: Arc<dyn OrganizationRepository>,
    freezes: Arc<dyn FreezeRepository>,
}

impl FreezeNamespaceUseCase {
    /// The operation on these ports.
    pub fn new(
        ambient: Ambient,
        organizations: Arc<dyn OrganizationRepository>,
        freezes: Arc<dyn FreezeRepository>,
    ) -> Self {
        Self { ambient, organizations, freezes }
    }

    /// Freezes `namespace`. `false`: it was frozen already.
    ///
    /// # Errors
    /// See [`FreezeNamespaceError`].
    pub async fn freeze(
        &self,
        administrator: Administrator,
        namespace: Namespace,
    ) -> Result<bool, FreezeNamespaceError> {
        self.set(administrator, namespace, true).await
    }

    /// Thaws `namespace`. `false`: it was not frozen.
    ///
    /// # Errors
    /// See [`FreezeNamespaceError`].
    pub async fn thaw(&self, administrator: Administrator, namespace: Namespace) -> Result<bool, FreezeNamespaceError> {
        self.set(administrator, namespace, false).await
    }

    /// The frozen namespaces of `scope`, by organization and namespace.
    ///
    /// # Errors
    /// See [`FreezeNamespaceError`].
    pub async fn list(&self, scope: IntegrationScope) -> Result<Vec<FrozenNamespace>, FreezeNamespaceError> {
        if !permits(&scope) {
            return Err(AdministratorError::InsufficientRole.into());
        }
        let query = ListFrozen { scope, now: self.ambient.now() };
        let listed = self.freezes.list_frozen(query).await.map_err(|error| self.ambient.witness(error))?;
        listed.map_err(FreezeNamespaceError::Principal)
    }

    async fn set(
        &self,
        administrator: Administrator,
        namespace: Namespace,
        frozen: bool,
    ) -> Result<bool, FreezeNamespaceError> {
        let (authority, organization) = administrator.authority(&*self.organizations).await?;
        let now = self.ambient.now();
        let action = if frozen { AuditAction::NamespaceFrozen } else { AuditAction::NamespaceThawed };
        let note = AuditNote { namespace: namespace.clone(), purpose: None };
        let actor = Actor::from(&authority);
        let audit = self.ambient.record_on(now, organization, actor, action, Subject::Vault, note);
        let command = FreezeNamespace { authority, organization, namespace, frozen, now, audit };
        match self.freezes.freeze_namespace(command).await? {
            FreezeOutcome::Changed => Ok(true),
            FreezeOutcome::Unchanged => Ok(false),
            FreezeOutcome::NoOrganization => Err(AdministratorError::NoOrganization.into()),
            FreezeOutcome::Refused(refusal) => Err(FreezeNamespaceError::Principal(refusal)),
        }
    }
}
