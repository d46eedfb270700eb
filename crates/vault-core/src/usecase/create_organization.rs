//! Make an organization with keys of its own.

use super::Ambient;
use crate::audit::{Actor, AuditAction, Subject};
use crate::id::OrganizationId;
use crate::organization::{InvalidOrganizationName, Organization, OrganizationName, OrganizationState};
use crate::port::{CreateOrganization, OrganizationRepository, SealError, Sealer, StoreError};
use std::sync::Arc;

/// Why no organization was made.
#[derive(Debug, thiserror::Error)]
pub enum CreateOrganizationError {
    /// The name is refused.
    #[error(transparent)]
    Name(#[from] InvalidOrganizationName),
    /// The name is taken.
    #[error("an organization of this name is already there")]
    NameTaken,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Making keys failed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Makes organizations.
pub struct CreateOrganizationUseCase {
    ambient: Ambient,
    sealer: Arc<dyn Sealer>,
    organizations: Arc<dyn OrganizationRepository>,
}

impl CreateOrganizationUseCase {
    /// The operation on these ports.
    pub fn new(ambient: Ambient, sealer: Arc<dyn Sealer>, organizations: Arc<dyn OrganizationRepository>) -> Self {
        Self { ambient, sealer, organizations }
    }

    /// Makes an organization called `name`.
    ///
    /// # Errors
    /// See [`CreateOrganizationError`].
    pub async fn run(&self, name: &str) -> Result<Organization, CreateOrganizationError> {
        let name = OrganizationName::parse(name)?;
        let now = self.ambient.now();
        let id = OrganizationId::from_uuid(self.ambient.ids.ordered(now));
        let organization = Organization { id, name, state: OrganizationState::Active, created_at: now };
        let subject = Subject::Organization(id);
        let command = CreateOrganization {
            organization: organization.clone(),
            keys: self.sealer.new_organization_keys(id, now)?,
            audit: self.ambient.record(now, Some(id), Actor::Operator, AuditAction::OrganizationCreated, subject),
        };
        let created = self.organizations.create_organization(command).await?;
        if created { Ok(organization) } else { Err(CreateOrganizationError::NameTaken) }
    }
}
