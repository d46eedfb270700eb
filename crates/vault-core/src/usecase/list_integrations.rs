//! List integrations.

use super::Ambient;
use crate::integration::StoredIntegration;
use crate::port::{IntegrationRepository, IntegrationScope, ListIntegrations, StoreError};
use crate::principal::Denial;
use crate::role::Action;
use std::sync::Arc;

/// Why no integrations were listed.
#[derive(Debug, thiserror::Error)]
pub enum ListIntegrationsError {
    /// The role does not permit it.
    #[error("the role does not permit administering integrations")]
    InsufficientRole,
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Lists integrations.
pub struct ListIntegrationsUseCase {
    ambient: Ambient,
    integrations: Arc<dyn IntegrationRepository>,
}

impl ListIntegrationsUseCase {
    /// The operation on these ports.
    pub fn new(ambient: Ambient, integrations: Arc<dyn IntegrationRepository>) -> Self {
        Self { ambient, integrations }
    }

    /// The integrations of `scope`, by organization and name, for showing: an earlier token that no longer works is
    /// not told of.
    ///
    /// # Errors
    /// See [`ListIntegrationsError`].
    pub async fn run(&self, scope: IntegrationScope) -> Result<Vec<StoredIntegration>, ListIntegrationsError> {
        if !permits(&scope) {
            return Err(ListIntegrationsError::InsufficientRole);
        }
        let now = self.ambient.now();
        let query = ListIntegrations { scope, now };
        let listed = self.integrations.list_integrations(query).await.map_err(|error| self.ambient.witness(error))?;
        let mut listed = listed.map_err(ListIntegrationsError::Principal)?;
        for stored in &mut listed {
            stored.integration.earlier = stored.integration.earlier.filter(|earlier| now < earlier.until);
        }
        Ok(listed)
    }
}

/// Whether who asks for `scope` may administer integrations.
pub(super) fn permits(scope: &IntegrationScope) -> bool {
    match scope {
        IntegrationScope::Everywhere | IntegrationScope::Organization(_) => true,
        IntegrationScope::Session(principal) => principal.role.permits(Action::ManageIntegrations),
    }
}
