//! Integrations in the store.

use super::{Find, FreezeRepository, IssuerRepository, List, StoreError};
use crate::command::Command;
use crate::digest::RowMac;
use crate::error::Refusal;
use crate::id::{IntegrationId, OrganizationId};
use crate::integration::{Integration, IntegrationName, StoredIntegration};
use async_trait::async_trait;

/// By what an integration is found, within an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrationKey {
    /// Its id.
    Id(IntegrationId),
    /// Its name, without regard to ASCII case.
    Name(IntegrationName),
}

/// The last row of a page that is ordered by organization and name; the next page begins after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamePosition {
    /// The organization.
    pub organization: OrganizationId,
    /// What the list is ordered by within the organization.
    pub name: String,
}

/// Creates an integration.
#[derive(Clone, Debug)]
pub struct CreateIntegration {
    /// The integration.
    pub integration: Integration,
    /// The digest over it.
    pub digest: RowMac,
    /// The most integrations that the organization may have.
    pub limit: i64,
}

impl CreateIntegration {
    /// The refusal of one integration too many.
    pub const fn limit_reached(&self) -> Refusal {
        Refusal::LimitReached { what: "integrations", limit: self.limit }
    }
}

/// One change of an integration.
#[derive(Clone, Debug)]
pub enum IntegrationChange {
    /// The whole row is replaced, except id, organization, name and time of creation.
    Replace {
        /// What the row says from now on. Its version is one more than that of the row.
        integration: Box<Integration>,
        /// The digest over it.
        digest: RowMac,
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

/// Integrations. Every method refuses a principal that may no longer act ([`StoreError::Denied`]), in the same
/// transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IntegrationRepository: Send + Sync {
    /// Creates one.
    ///
    /// Refused with [`Refusal::NoOrganization`]: the principal reaches no such organization; [`Refusal::NameTaken`]:
    /// another one of the organization has the name; [`CreateIntegration::limit_reached`].
    async fn create_integration(&self, command: Command<CreateIntegration>) -> Result<(), StoreError>;

    /// Finds one that the principal reaches.
    async fn find_integration(&self, query: Find<IntegrationKey>) -> Result<Option<StoredIntegration>, StoreError>;

    /// Reads a page, ordered by organization and [`IntegrationName::uniqueness_key`], which a position names too.
    async fn list_integrations(&self, query: List<NamePosition>) -> Result<Vec<StoredIntegration>, StoreError>;

    /// Changes one. Whatever an integration does that is decided after it is decided on the changed row. Replacing a
    /// token forgets when the integration was last used.
    ///
    /// Refused with [`Refusal::NotFound`]: the principal reaches no such integration; [`Refusal::Contended`]: the row has
    /// another version.
    async fn change_integration(&self, command: Command<ChangeIntegration>) -> Result<(), StoreError>;
}

/// What administering integrations and namespaces needs of a store.
pub trait IntegrationStore: IntegrationRepository + FreezeRepository + IssuerRepository {}

impl<S: IntegrationRepository + FreezeRepository + IssuerRepository + ?Sized> IntegrationStore for S {}
