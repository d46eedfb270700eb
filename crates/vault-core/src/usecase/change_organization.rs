//! Disable, enable or delete an organization.

use super::Ambient;
use crate::audit::{Actor, AuditAction, Subject};
use crate::organization::{Organization, OrganizationName, OrganizationState};
use crate::port::{DeleteOrganization, OrganizationRepository, SetOrganizationState, StoreError};
use std::sync::Arc;

/// What to do with an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrganizationCommand {
    /// Nobody logs in any more; every session ends.
    Disable,
    /// Its accounts may log in again.
    Enable,
    /// It goes for good, with its accounts, credentials and keys.
    Delete,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeOrganizationError {
    /// No organization of this name.
    #[error("no organization of this name")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Changes organizations.
pub struct ChangeOrganization {
    ambient: Ambient,
    organizations: Arc<dyn OrganizationRepository>,
}

impl ChangeOrganization {
    /// The operation on these ports.
    pub fn new(ambient: Ambient, organizations: Arc<dyn OrganizationRepository>) -> Self {
        Self { ambient, organizations }
    }

    /// Carries `command` out on the organization called `name`, and says which it was.
    ///
    /// # Errors
    /// See [`ChangeOrganizationError`].
    pub async fn run(&self, name: &str, command: OrganizationCommand) -> Result<Organization, ChangeOrganizationError> {
        let name = OrganizationName::parse(name).map_err(|_| ChangeOrganizationError::NotFound)?;
        let found = self.organizations.find_organization(&name).await?;
        let mut organization = found.ok_or(ChangeOrganizationError::NotFound)?;
        let action = match command {
            OrganizationCommand::Disable => AuditAction::OrganizationDisabled,
            OrganizationCommand::Enable => AuditAction::OrganizationEnabled,
            OrganizationCommand::Delete => AuditAction::OrganizationDeleted,
        };
        let id = organization.id;
        let subject = Subject::Organization(id);
        let audit = self.ambient.record(self.ambient.now(), Some(id), Actor::Operator, action, subject);
        let state = match command {
            OrganizationCommand::Disable => Some(OrganizationState::Disabled),
            OrganizationCommand::Enable => Some(OrganizationState::Active),
            OrganizationCommand::Delete => None,
        };
        let changed = match state {
            Some(state) => {
                organization.state = state;
                let command = SetOrganizationState { organization: id, state, audit };
                self.organizations.set_organization_state(command).await?
            }
            None => self.organizations.delete_organization(DeleteOrganization { organization: id, audit }).await?,
        };
        if changed { Ok(organization) } else { Err(ChangeOrganizationError::NotFound) }
    }
}
