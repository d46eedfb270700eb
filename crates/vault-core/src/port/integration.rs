//! Store port for integrations.

use super::{Find, IssuerRepository, List, StoreError};
use crate::audit::AuditAction;
use crate::command::Command;
use crate::digest::RowMac;
use crate::error::Refusal;
use crate::id::{IntegrationId, OrganizationId};
use crate::integration::{Integration, IntegrationName, StoredIntegration};
use crate::namespace::Namespace;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Key of an integration, unique in its organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrationKey {
    /// ID of the integration.
    Id(IntegrationId),
    /// Name of the integration, compared without ASCII case.
    Name(IntegrationName),
}

/// Position of the last row of a page that is ordered by organization and name. The next page starts after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamePosition {
    /// Organization of the row, the first sort key.
    pub organization: OrganizationId,
    /// Sort key within the organization.
    pub name: String,
}

/// Command that creates an integration.
#[derive(Clone, Debug)]
pub struct CreateIntegration {
    /// Integration to create. Its name must be unique in the organization.
    pub integration: Integration,
    /// MAC of the row.
    pub digest: RowMac,
    /// Largest number of integrations in the organization.
    pub limit: i64,
}

impl CreateIntegration {
    /// Returns the refusal for an organization that already has `limit` integrations.
    pub const fn limit_reached(&self) -> Refusal {
        Refusal::LimitReached { what: "integrations", limit: self.limit }
    }
}

/// Change to an integration.
#[derive(Clone, Debug)]
pub enum IntegrationChange {
    /// Replacement of the whole row, except its ID, organization, name and creation time.
    Replace {
        /// New content of the row. Its version is the stored version plus one.
        integration: Box<Integration>,
        /// MAC of the new row.
        digest: RowMac,
    },
    /// Deletion of the integration and its activations.
    Delete,
}

/// Command that changes or deletes an integration.
#[derive(Clone, Debug)]
pub struct ChangeIntegration {
    /// Organization of the integration.
    pub organization: OrganizationId,
    /// Integration to change.
    pub integration: IntegrationId,
    /// Version of the row on which the change was decided.
    pub version: i64,
    /// Change to apply.
    pub change: IntegrationChange,
}

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

/// Repository of integrations. Every method authorizes the principal in its own transaction, and returns
/// [`StoreError::Denied`] if the principal is no longer authorized.
#[async_trait]
pub trait IntegrationRepository: Send + Sync {
    /// Creates an integration.
    ///
    /// # Errors
    /// [`StoreError::Refused`] with
    /// - [`Refusal::NoOrganization`] if the principal has no access to such an organization,
    /// - [`Refusal::NameTaken`] if another integration of the organization has the name,
    /// - [`CreateIntegration::limit_reached`] if the organization has the largest number of integrations.
    async fn create_integration(&self, command: Command<CreateIntegration>) -> Result<(), StoreError>;

    /// Finds an integration to which the principal has access.
    async fn find_integration(&self, query: Find<IntegrationKey>) -> Result<Option<StoredIntegration>, StoreError>;

    /// Lists a page, ordered by organization and [`IntegrationName::uniqueness_key`]. A position contains the same key.
    async fn list_integrations(&self, query: List<NamePosition>) -> Result<Vec<StoredIntegration>, StoreError>;

    /// Counts the sealed audit entries of the organization's integrations within a period, by integration, namespace, action
    /// and day, in any order. Entries with unknown actions are omitted.
    async fn count_integration_actions(
        &self,
        query: Find<CountedPeriod>,
    ) -> Result<Vec<IntegrationActions>, StoreError>;

    /// Counts the same entries by action and hour, in any order.
    async fn count_hourly_actions(&self, query: Find<CountedPeriod>) -> Result<Vec<HourlyActions>, StoreError>;

    /// Changes an integration. Requests of the integration that are decided afterwards use the changed row. Replacing a
    /// token clears the time of its last use.
    ///
    /// # Errors
    /// [`StoreError::Refused`] with
    /// - [`Refusal::NotFound`] if the principal has no access to such an integration,
    /// - [`Refusal::Contended`] if the row has another version.
    async fn change_integration(&self, command: Command<ChangeIntegration>) -> Result<(), StoreError>;
}

/// Store ports for the administration of integrations.
pub trait IntegrationStore: IntegrationRepository + IssuerRepository {}

impl<S: IntegrationRepository + IssuerRepository + ?Sized> IntegrationStore for S {}
