//! Organizations in the store.

use super::{AuditLog, AuditTrail, IssuerRepository, KeyRepository, Maintenance, RestoreRepository, StoreError};
use crate::audit::SealedAuditRecord;
use crate::id::OrganizationId;
use crate::organization::{Organization, OrganizationName, OrganizationState};
use crate::sealed::OrganizationKeys;
use async_trait::async_trait;

/// Makes an organization with its keys.
#[derive(Clone, Debug)]
pub struct CreateOrganization {
    /// The organization.
    pub organization: Organization,
    /// Its keys.
    pub keys: OrganizationKeys,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// Disables or enables an organization. Disabling ends its sessions.
#[derive(Clone, Debug)]
pub struct SetOrganizationState {
    /// The organization.
    pub organization: OrganizationId,
    /// The new state.
    pub state: OrganizationState,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// Deletes an organization with its accounts, sessions, credentials and keys. Its audit stays.
#[derive(Clone, Debug)]
pub struct DeleteOrganization {
    /// The organization.
    pub organization: OrganizationId,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// Organizations.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OrganizationRepository: Send + Sync {
    /// Makes one. `false`: the name is taken, nothing was changed.
    async fn create_organization(&self, command: CreateOrganization) -> Result<bool, StoreError>;

    /// The organization of this name, without regard to ASCII case.
    async fn find_organization(&self, name: &OrganizationName) -> Result<Option<Organization>, StoreError>;

    /// The organization of this id.
    async fn organization(&self, id: OrganizationId) -> Result<Option<Organization>, StoreError>;

    /// All, by name.
    async fn list_organizations(&self) -> Result<Vec<Organization>, StoreError>;

    /// Sets the state. `false`: no such organization.
    async fn set_organization_state(&self, command: SetOrganizationState) -> Result<bool, StoreError>;

    /// Deletes one. `false`: no such organization.
    async fn delete_organization(&self, command: DeleteOrganization) -> Result<bool, StoreError>;
}

/// What operators need of a store.
pub trait OperatorStore:
    OrganizationRepository + KeyRepository + AuditLog + AuditTrail + Maintenance + RestoreRepository + IssuerRepository
{
}

impl<S> OperatorStore for S where
    S: OrganizationRepository
        + KeyRepository
        + AuditLog
        + AuditTrail
        + Maintenance
        + RestoreRepository
        + IssuerRepository
        + ?Sized
{
}
