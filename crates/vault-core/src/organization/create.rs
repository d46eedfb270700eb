//! Creation of organizations.

use super::Organization;
use crate::audit::AuditAction;
use crate::entity::Entity as _;
use crate::error::Refusal;
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::sealed::OrganizationKeys;

/// Creates an organization with its keys.
///
/// Fails with [`Refusal::Contended`] if the instance key that wraps its keys is no longer the active one, and with
/// [`Refusal::NameTaken`] if the name is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOrganization {
    /// The organization.
    pub organization: Organization,
    /// Its wrapped keys.
    pub keys: OrganizationKeys,
}

impl Operation for CreateOrganization {
    type Outcome = ();
    const ACCESS: Access = Access::Write;

    /// Nothing of a new organization is locked, and its name is a row of the instance.
    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let Self { organization, keys } = self;
        let id = organization.id;
        unit.authorize().await?;
        if let Some(active) = unit.rows().active_instance_key().await?
            && keys.wrapping_keys().any(|key| key != active)
        {
            return Err(Refusal::Contended.into());
        }
        // Not together: a refusal of the name would cancel the other statements.
        unit.insert(id, *id.as_uuid(), organization).await?;
        unit.rows().insert_organization(id, keys).await?;
        unit.record(Some(id), AuditAction::OrganizationCreated, organization.subject(*id.as_uuid())).await
    }
}
