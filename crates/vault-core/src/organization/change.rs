//! Changes of organizations.

use super::{Organization, OrganizationState};
use crate::audit::{AuditAction, Subject};
use crate::entity::{Entity as _, Kind};
use crate::error::Refusal;
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};

/// Disables or enables an organization. Disabling ends its sessions and refuses its integrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOrganizationState {
    /// The organization.
    pub organization: OrganizationId,
    /// Its new state.
    pub state: OrganizationState,
}

impl Operation for SetOrganizationState {
    type Outcome = Organization;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Organization, Failure> {
        let Self { organization: id, state } = *self;
        unit.authorize().await?;
        let before = unit.organization(id).await?.ok_or(Refusal::NoOrganization)?;
        let after = Organization { state, ..Organization::clone(&before) };
        unit.replace(&before, &after).await?;
        let action = match state {
            OrganizationState::Active => AuditAction::OrganizationEnabled,
            OrganizationState::Disabled => {
                unit.rows().end_sessions(id).await?;
                // Waits for transactions of integrations that have begun.
                unit.rows().lock_entities(id, Kind::Integration).await?;
                AuditAction::OrganizationDisabled
            }
        };
        unit.record(Some(id), action, after.subject(*id.as_uuid())).await?;
        Ok(after)
    }
}

/// Deletes an organization with its accounts, sessions, credentials and keys. Its audit log is kept. Rows without a bound on
/// their number are unreadable from then on, and removed as [`Expired::Erasures`](crate::maintenance::Expired::Erasures).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteOrganization(pub OrganizationId);

impl Operation for DeleteOrganization {
    type Outcome = ();
    /// Runs alone, because it also removes rows of the instance, and no other operation can follow in its transaction.
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        unit.authorize().await?;
        unit.rows().lock(self.0).await?;
        if !unit.remove::<Organization>(self.0, *self.0.as_uuid()).await? {
            return Err(Refusal::NoOrganization.into());
        }
        unit.rows().remove_organization(self.0).await?;
        unit.record(Some(self.0), AuditAction::OrganizationDeleted, Subject::Organization(self.0).into()).await
    }
}
