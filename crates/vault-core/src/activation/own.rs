//! An integration's own activations: they are listed, found and ended.

use super::{Activation, ForIntegration};
use crate::audit::SealedAuditRecord;
use crate::id::{ActivationId, OrganizationId};
use crate::integration::IntegrationPrincipal;
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::principal::Denial;
use crate::time::Timestamp;
use futures_util::try_join;

/// Reads a page of an integration's active activations, newest first (by ID, descending).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListActivations {
    /// Integration that makes the request.
    pub principal: IntegrationPrincipal,
    /// Position after which the page starts: only older activations are returned.
    pub after: Option<ActivationId>,
    /// Maximum number of results.
    pub limit: usize,
    /// Current time.
    pub now: Timestamp,
}

impl Operation for ListActivations {
    type Outcome = Vec<Activation>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.principal.organization));
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| true;

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<Activation>, Failure> {
        let active = flat(unit.rows().active_activations(self));
        let (active, authorized) = try_join!(active, unit.authorize_integration(&self.principal, self.now))?;
        authorized.map_err(Denial::Integration)?;
        Ok(active)
    }
}

/// Reads an active activation of an integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindActivation {
    /// Integration that makes the request.
    pub principal: IntegrationPrincipal,
    /// ID of the activation.
    pub activation: ActivationId,
    /// Current time.
    pub now: Timestamp,
}

impl Operation for FindActivation {
    type Outcome = Option<Activation>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.principal.organization));
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| true;

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<Activation>, Failure> {
        find(unit, &self.principal, self.activation, self.now).await
    }
}

/// Reads an active activation of an integration, which it authorizes.
async fn find(
    unit: &Unit<'_>,
    principal: &IntegrationPrincipal,
    activation: ActivationId,
    now: Timestamp,
) -> Result<Option<Activation>, Failure> {
    let found = flat(unit.rows().activation(principal.organization, activation));
    let (found, authorized) = try_join!(found, unit.authorize_integration(principal, now))?;
    authorized.map_err(Denial::Integration)?;
    Ok(found.filter(|found| found.integration == principal.integration && found.is_live(now)))
}

/// Ends an activation of the integration, and records the time in the uses of its credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndActivation {
    /// ID of the activation.
    pub activation: ActivationId,
}

impl Operation for ForIntegration<EndActivation> {
    /// `false` if no active activation has this ID. If several calls race, exactly one returns `true`.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.principal.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let (rows, organization) = (unit.rows(), self.principal.organization);
        let found = find(unit, &self.principal, self.payload.activation, self.now).await?;
        let Some(found) = found else { return Ok(false) };
        try_join!(
            flat(rows.remove_activation(organization, found.id)),
            flat(rows.end_uses(&found, self.now)),
            unit.record_entry(&self.audit),
        )?;
        Ok(true)
    }
}

/// Removes an activation that issued nothing, if it still exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortActivation {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the activation.
    pub activation: ActivationId,
    /// Audit record, which is stored even if the activation no longer exists.
    pub audit: SealedAuditRecord,
}

impl Operation for AbortActivation {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let removed = unit.rows().remove_activation(self.organization, self.activation);
        try_join!(flat(removed), unit.record_entry(&self.audit))?;
        Ok(())
    }
}
