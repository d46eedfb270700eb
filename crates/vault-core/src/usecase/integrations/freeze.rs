//! Freezing and unfreezing of namespaces.

use super::Integrations;
use crate::error::Error;
use crate::id::OrganizationId;
use crate::namespace::{Freezing, Namespace, SetFrozen};
use crate::principal::Principal;

impl Integrations {
    /// Freezes `namespace`. After this returns, no activation issues its credentials.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`](crate::Refusal::NoOrganization) if the organization does not exist.
    pub async fn freeze(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        namespace: Namespace,
    ) -> Result<Freezing, Error> {
        self.set_frozen(principal, organization, namespace, true).await
    }

    /// Unfreezes `namespace`.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`](crate::Refusal::NoOrganization) if the organization does not exist.
    pub async fn thaw(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        namespace: Namespace,
    ) -> Result<Freezing, Error> {
        self.set_frozen(principal, organization, namespace, false).await
    }

    async fn set_frozen(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        namespace: Namespace,
        frozen: bool,
    ) -> Result<Freezing, Error> {
        Self::permit(principal, organization)?;
        let id = self.environment.ids.random();
        let operation = SetFrozen { organization, namespace, frozen, id };
        self.operations.run(&self.environment, principal, operation).await
    }
}
