//! Counts of the audit entries of integrations.

use crate::audit::AuditAction;
use crate::id::{IntegrationId, OrganizationId};
use crate::namespace::Namespace;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;

/// Period whose audit entries are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedPeriod {
    /// Start of the period.
    pub since: Timestamp,
    /// Only entries of this integration. `None` counts those of all integrations.
    pub integration: Option<IntegrationId>,
}

/// Audit entries of one integration with one namespace and action, within one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrationActions {
    /// The integration, which may have been deleted.
    pub integration: IntegrationId,
    /// Their namespace, if they have one.
    pub namespace: Option<Namespace>,
    /// Their action.
    pub action: AuditAction,
    /// The day: number of whole periods of 24 hours since the start of the count.
    pub day: i64,
    /// Number of occurrences.
    pub count: i64,
    /// Time of the first entry.
    pub first_at: Timestamp,
    /// Time of the last entry.
    pub last_at: Timestamp,
}

/// Audit entries with one action, within one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourlyActions {
    /// Their action.
    pub action: AuditAction,
    /// The hour: number of whole hours since the start of the count.
    pub hour: i64,
    /// Number of occurrences.
    pub count: i64,
}

/// Counts the entries of an organization's integrations by integration, namespace, action and day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountActions(pub OrganizationId, pub CountedPeriod);

impl Operation for CountActions {
    type Outcome = Vec<IntegrationActions>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<IntegrationActions>, Failure> {
        unit.authorize().await?;
        Ok(unit.rows().count_actions(self.0, self.1).await?)
    }
}

/// Counts the same entries by action and hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountHours(pub OrganizationId, pub CountedPeriod);

impl Operation for CountHours {
    type Outcome = Vec<HourlyActions>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<HourlyActions>, Failure> {
        unit.authorize().await?;
        Ok(unit.rows().count_hours(self.0, self.1).await?)
    }
}
