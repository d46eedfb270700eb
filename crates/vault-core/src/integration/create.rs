//! Creation of integrations.

use super::Integration;
use crate::audit::AuditAction;
use crate::entity::{Entity, Kind};
use crate::error::Refusal;
use crate::id::{IntegrationId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use futures_util::try_join;

/// Creates an integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIntegration {
    /// Its organization.
    pub organization: OrganizationId,
    /// ID of the integration.
    pub id: IntegrationId,
    /// The integration. Its name must be unique in the organization.
    pub integration: Integration,
    /// Largest number of integrations in the organization.
    pub limit: i64,
}

impl Operation for CreateIntegration {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let Self { organization, id, ref integration, limit } = *self;
        unit.authorize().await?;
        let rows = unit.rows();
        let (owner, count) = try_join!(unit.organization(organization), async {
            Ok(rows.count_entities(organization, Kind::Integration).await?)
        })?;
        if owner.is_none() || !unit.principal().reaches(organization) {
            return Err(Refusal::NoOrganization.into());
        }
        if count >= limit {
            return Err(Refusal::LimitReached { what: "integrations", limit }.into());
        }
        unit.insert(organization, *id.as_uuid(), integration).await?;
        let affected = integration.subject(*id.as_uuid());
        unit.record(Some(organization), AuditAction::IntegrationCreated, affected).await
    }
}
