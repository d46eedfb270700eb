//! Store port for organizations.

use super::{AuditLog, AuditTrail, KeyRepository, Maintenance, RestoreRepository, StoreError};
use crate::audit::SealedAuditRecord;
use crate::id::OrganizationId;
use crate::organization::{Organization, OrganizationName, OrganizationState};
use crate::sealed::OrganizationKeys;
use async_trait::async_trait;

/// Command that creates an organization with its keys.
#[derive(Clone, Debug)]
pub struct CreateOrganization {
    /// Organization to create. Its name must be unique.
    pub organization: Organization,
    /// Wrapped keys of the organization.
    pub keys: OrganizationKeys,
    /// Audit record of the creation.
    pub audit: SealedAuditRecord,
}

/// Command that disables or enables an organization. Disabling ends its sessions.
#[derive(Clone, Debug)]
pub struct SetOrganizationState {
    /// Organization to change.
    pub organization: OrganizationId,
    /// State after the change.
    pub state: OrganizationState,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Command that deletes an organization with its accounts, sessions, credentials and keys. Its audit log is kept.
#[derive(Clone, Debug)]
pub struct DeleteOrganization {
    /// Organization to delete.
    pub organization: OrganizationId,
    /// Audit record of the deletion.
    pub audit: SealedAuditRecord,
}

/// Repository of organizations.
#[async_trait]
pub trait OrganizationRepository: Send + Sync {
    /// Creates an organization. Returns `false` and changes nothing if the name is already in use.
    async fn create_organization(&self, command: CreateOrganization) -> Result<bool, StoreError>;

    /// Finds an organization by name, ignoring ASCII case.
    async fn find_organization(&self, name: &OrganizationName) -> Result<Option<Organization>, StoreError>;

    /// Returns the organization with this ID, or `None` if it does not exist.
    async fn organization(&self, id: OrganizationId) -> Result<Option<Organization>, StoreError>;

    /// Lists all organizations, ordered by name.
    async fn list_organizations(&self) -> Result<Vec<Organization>, StoreError>;

    /// Sets the state of an organization. Returns `false` if the organization does not exist.
    async fn set_organization_state(&self, command: SetOrganizationState) -> Result<bool, StoreError>;

    /// Deletes an organization. Returns `false` if the organization does not exist.
    async fn delete_organization(&self, command: DeleteOrganization) -> Result<bool, StoreError>;
}

/// Store ports that the operator's use cases require.
pub trait OperatorStore:
    OrganizationRepository + KeyRepository + AuditLog + AuditTrail + Maintenance + RestoreRepository
{
}

impl<S> OperatorStore for S where
    S: OrganizationRepository + KeyRepository + AuditLog + AuditTrail + Maintenance + RestoreRepository + ?Sized
{
}
