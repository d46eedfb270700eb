//! Integrations in the store.

use super::{FreezeRepository, StoreError};
use crate::command::Command;
use crate::digest::Digest;
use crate::id::{IntegrationId, OrganizationId};
use crate::integration::{Integration, IntegrationName, StoredIntegration};
use crate::principal::{Principal, Scope};
use crate::time::Timestamp;
use async_trait::async_trait;

/// By what an integration is found, within an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrationKey {
    /// Its id.
    Id(IntegrationId),
    /// Its name, without regard to ASCII case.
    Name(IntegrationName),
}

/// Looks for an integration.
#[derive(Clone, Debug)]
pub struct FindIntegration {
    /// Who asks.
    pub principal: Principal,
    /// The organization.
    pub organization: OrganizationId,
    /// By what.
    pub key: IntegrationKey,
    /// Now.
    pub now: Timestamp,
}

/// The last row of a page that is ordered by organization and name; the next page begins after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamePosition {
    /// The organization.
    pub organization: OrganizationId,
    /// What the list is ordered by within the organization.
    pub name: String,
}

/// Reads a page of integrations.
#[derive(Clone, Debug)]
pub struct ListIntegrations {
    /// Who asks.
    pub principal: Principal,
    /// Whose.
    pub scope: Scope,
    /// Those after this one, whose name is an [`IntegrationName::uniqueness_key`].
    pub after: Option<NamePosition>,
    /// At most so many.
    pub limit: usize,
    /// Now.
    pub now: Timestamp,
}

/// Creates an integration.
#[derive(Clone, Debug)]
pub struct CreateIntegration {
    /// The integration.
    pub integration: Integration,
    /// The digest over it.
    pub digest: Digest,
    /// The most integrations that the organization may have.
    pub limit: i64,
}

/// What creating an integration came to. Only [`CreateIntegrationOutcome::Created`] changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateIntegrationOutcome {
    /// Created.
    Created,
    /// Another one of the organization has the name.
    NameTaken,
    /// The organization has reached its limit of integrations.
    LimitReached,
    /// The principal reaches no such organization.
    NoOrganization,
}

/// One change of an integration.
#[derive(Clone, Debug)]
pub enum IntegrationChange {
    /// The whole row is replaced, except id, organization, name and time of creation.
    Replace {
        /// What the row says from now on. Its version is one more than that of the row.
        integration: Box<Integration>,
        /// The digest over it.
        digest: Digest,
    },
    /// It is deleted, with its activations.
    Delete,
}

/// Changes an integration.
#[derive(Clone, Debug)]
pub struct ChangeIntegration {
    /// The organization.
    pub organization: OrganizationId,
    /// The integration.
    pub integration: IntegrationId,
    /// The version that the change was decided on.
    pub version: i64,
    /// The change.
    pub change: IntegrationChange,
}

/// What changing an integration came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeIntegrationOutcome {
    /// Changed.
    Changed,
    /// The row has another version: read it again.
    Stale,
    /// The principal reaches no such integration.
    NotFound,
}

/// Integrations. Every method refuses a principal that may no longer act ([`StoreError::Denied`]), in the same
/// transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IntegrationRepository: Send + Sync {
    /// Creates one.
    async fn create_integration(
        &self,
        command: Command<CreateIntegration>,
    ) -> Result<CreateIntegrationOutcome, StoreError>;

    /// Finds one that the principal reaches.
    async fn find_integration(&self, query: FindIntegration) -> Result<Option<StoredIntegration>, StoreError>;

    /// Reads a page, ordered by organization and [`IntegrationName::uniqueness_key`].
    async fn list_integrations(&self, query: ListIntegrations) -> Result<Vec<StoredIntegration>, StoreError>;

    /// Changes one. Whatever an integration does that is decided after it is decided on the changed row. Replacing a
    /// token forgets when the integration was last used.
    async fn change_integration(
        &self,
        command: Command<ChangeIntegration>,
    ) -> Result<ChangeIntegrationOutcome, StoreError>;
}

/// What administering integrations and namespaces needs of a store.
pub trait IntegrationStore: IntegrationRepository + FreezeRepository {}

impl<S: IntegrationRepository + FreezeRepository + ?Sized> IntegrationStore for S {}
