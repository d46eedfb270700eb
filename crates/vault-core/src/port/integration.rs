//! Integrations in the store.

use super::StoreError;
use crate::audit::SealedAuditRecord;
use crate::digest::Digest;
use crate::id::{IntegrationId, OrganizationId};
use crate::integration::{Integration, IntegrationName, StoredIntegration};
use crate::principal::{Denial, Principal, SessionPrincipal};
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
    /// By whose order. What it does not reach is not there.
    pub authority: Principal,
    /// The organization.
    pub organization: OrganizationId,
    /// By what.
    pub key: IntegrationKey,
    /// Now.
    pub now: Timestamp,
}

/// Which integrations a list holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrationScope {
    /// All, for operators.
    Everywhere,
    /// Those of one organization, for operators.
    Organization(OrganizationId),
    /// Those of the organization of this session.
    Session(SessionPrincipal),
}

/// Lists integrations.
#[derive(Clone, Debug)]
pub struct ListIntegrations {
    /// Which.
    pub scope: IntegrationScope,
    /// Now.
    pub now: Timestamp,
}

/// Makes an integration.
#[derive(Clone, Debug)]
pub struct CreateIntegration {
    /// By whose order; judged in the decision.
    pub authority: Principal,
    /// The integration.
    pub integration: Integration,
    /// The digest over it.
    pub digest: Digest,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What making an integration came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateIntegrationOutcome {
    /// Made.
    Created,
    /// Another one of the organization has the name.
    NameTaken,
    /// No such organization within the authority's reach.
    NoOrganization,
    /// The session may no longer act. Decided before anything else.
    Refused(Denial),
}

/// One change of an integration.
#[derive(Clone, Debug)]
pub enum IntegrationChange {
    /// State, tokens or both: the whole row is replaced, but for its id, organization, name and time of making.
    Replace {
        /// What the row says from now on.
        integration: Box<Integration>,
        /// The digest over it.
        digest: Digest,
    },
    /// It goes for good, with its activations.
    Delete,
}

/// Changes an integration.
#[derive(Clone, Debug)]
pub struct ChangeIntegration {
    /// By whose order; judged in the decision.
    pub authority: Principal,
    /// The organization.
    pub organization: OrganizationId,
    /// The integration.
    pub integration: IntegrationId,
    /// The row's version that the change was decided on.
    pub version: i64,
    /// The change.
    pub change: IntegrationChange,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What changing an integration came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeIntegrationOutcome {
    /// Changed.
    Changed,
    /// The row has changed since it was read: read it again.
    Stale,
    /// No such integration within the authority's reach.
    NotFound,
    /// The session may no longer act. Decided before anything else.
    Refused(Denial),
}

/// Integrations.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IntegrationRepository: Send + Sync {
    /// Makes one.
    async fn create_integration(&self, command: CreateIntegration) -> Result<CreateIntegrationOutcome, StoreError>;

    /// Finds one, by an authority.
    async fn find_integration(
        &self,
        query: FindIntegration,
    ) -> Result<Result<Option<StoredIntegration>, Denial>, StoreError>;

    /// The one whose token, or token before it, has this digest, in whatever organization, state and age, if its
    /// organization is in use. Whether the token still works is judged by the caller.
    async fn find_integration_by_token(&self, token: Digest) -> Result<Option<StoredIntegration>, StoreError>;

    /// Integrations, by organization and [`IntegrationName::uniqueness_key`].
    async fn list_integrations(
        &self,
        query: ListIntegrations,
    ) -> Result<Result<Vec<StoredIntegration>, Denial>, StoreError>;

    /// Changes one. A change raises its version.
    async fn change_integration(&self, command: ChangeIntegration) -> Result<ChangeIntegrationOutcome, StoreError>;
}
