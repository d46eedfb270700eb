//! Creation of organizations.

use super::{Organization, OrganizationName, OrganizationState};
use crate::audit::AuditAction;
use crate::entity::Entity as _;
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};

/// Creates an organization with its keys.
///
/// Fails with [`Refusal::NameTaken`](crate::Refusal::NameTaken) if the name is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOrganization {
    /// ID of the organization.
    pub id: OrganizationId,
    /// Its name.
    pub name: OrganizationName,
}

impl Operation for CreateOrganization {
    type Outcome = Organization;
    /// Nothing of a new organization is locked, and its name is a row of the instance.
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Organization, Failure> {
        let Self { id, ref name } = *self;
        unit.authorize().await?;
        let created_at = unit.now();
        let keys = unit.credentials().new_keys(id, created_at).map_err(Failure::Seal)?;
        let organization = Organization { id, name: name.clone(), state: OrganizationState::Active, created_at, keys };
        // Not together: a refusal of the name would cancel the other statements.
        unit.insert(id, *id.as_uuid(), &organization).await?;
        unit.rows().insert_organization(id).await?;
        unit.record(Some(id), AuditAction::OrganizationCreated, organization.subject(*id.as_uuid())).await?;
        Ok(organization)
    }
}
