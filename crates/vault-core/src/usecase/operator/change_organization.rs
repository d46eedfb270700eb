//! Disable, enable, delete or list organizations.

use super::Operator;
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::maintenance::{DeleteExpired, Expired};
use crate::organization::{
    DeleteOrganization, FindOrganization, ListOrganizations, Organization, OrganizationName, OrganizationState,
    ReadOrganization, SetOrganizationState,
};

/// Command for an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrganizationCommand {
    /// Disables logins, ends all sessions and refuses integrations.
    Disable,
    /// Permits logins and integration tokens again.
    Enable,
    /// Deletes the organization permanently, with its accounts, credentials and keys.
    Delete,
}

impl Operator {
    /// Runs `command` on the organization with the name `name`, and returns it.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`] if it does not exist.
    pub async fn change_organization(&self, name: &str, command: OrganizationCommand) -> Result<Organization, Error> {
        let found = self.organization(name).await?;
        let state = match command {
            OrganizationCommand::Disable => OrganizationState::Disabled,
            OrganizationCommand::Enable => OrganizationState::Active,
            OrganizationCommand::Delete => {
                self.run(DeleteOrganization(found.id)).await?;
                // If this is interrupted, maintenance continues it.
                while self.run(DeleteExpired(Expired::Erasures)).await? > 0 {}
                return Ok(found);
            }
        };
        self.set_organization_state(found.id, state).await
    }

    /// Sets the state of an organization, and returns it. Disabling ends its sessions.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`] if it does not exist.
    pub async fn set_organization_state(
        &self,
        organization: OrganizationId,
        state: OrganizationState,
    ) -> Result<Organization, Error> {
        self.run(SetOrganizationState { organization, state }).await
    }

    /// Returns the organization with the name `name`, ignoring ASCII case.
    ///
    /// # Errors
    /// - [`Refusal::NoOrganization`] if it does not exist.
    /// - [`Refusal::Damaged`] if its row does not open, or the name leads to an organization of another name.
    pub async fn organization(&self, name: &str) -> Result<Organization, Error> {
        let name = OrganizationName::parse(name).map_err(|_| Refusal::NoOrganization)?;
        Ok(self.run(FindOrganization(name)).await?.ok_or(Refusal::NoOrganization)?)
    }

    /// Returns the organization with this ID.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`] if it does not exist.
    pub async fn organization_with_id(&self, id: OrganizationId) -> Result<Organization, Error> {
        Ok(self.run(ReadOrganization(id)).await?.ok_or(Refusal::NoOrganization)?)
    }

    /// Returns all organizations, ordered by name.
    ///
    /// # Errors
    /// The store failed.
    pub async fn organizations(&self) -> Result<Vec<Organization>, Error> {
        self.run(ListOrganizations).await
    }
}
