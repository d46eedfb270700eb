//! Disable, enable, delete or list organizations.

use super::Operator;
use crate::audit::{Actor, AuditAction, RecordedRow, RowState, Subject};
use crate::error::{Error, Refusal};
use crate::organization::{Organization, OrganizationName, OrganizationState};
use crate::port::{DeleteOrganization, Event, SetOrganizationState};

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
        let mut organization = self.organization(name).await?;
        let (action, state) = match command {
            OrganizationCommand::Disable => (AuditAction::OrganizationDisabled, Some(OrganizationState::Disabled)),
            OrganizationCommand::Enable => (AuditAction::OrganizationEnabled, Some(OrganizationState::Active)),
            OrganizationCommand::Delete => (AuditAction::OrganizationDeleted, None),
        };
        let id = organization.id;
        let left = state.map_or(RowState::Gone, OrganizationState::recorded);
        let affected = Subject::Organization(id).left(RecordedRow::Organization, left);
        let audit = self.environment.record(self.environment.now(), Some(id), Actor::Operator, action, affected);
        let recorded = Event::recorded(&audit);
        let changed = match state {
            Some(state) => {
                organization.state = state;
                self.store.set_organization_state(SetOrganizationState { organization: id, state, audit }).await?
            }
            None => self.store.delete_organization(DeleteOrganization { organization: id, audit }).await?,
        };
        if !changed {
            return Err(Refusal::NoOrganization.into());
        }
        self.environment.emit(recorded);
        Ok(organization)
    }

    /// Returns the organization with the name `name`, ignoring ASCII case.
    ///
    /// # Errors
    /// - [`Refusal::NoOrganization`] if it does not exist.
    /// - [`Refusal::Damaged`] if the name was not given to this organization by OrgVault: everything that follows would
    ///   happen in another organization than the operator has named.
    pub async fn organization(&self, name: &str) -> Result<Organization, Error> {
        let name = OrganizationName::parse(name).map_err(|_| Refusal::NoOrganization)?;
        let found = self.store.find_organization(&name).await?.ok_or(Refusal::NoOrganization)?;
        let keys = self.store.organization_keys(found.id).await?.ok_or(Refusal::NoOrganization)?;
        self.sealer
            .verify_organization_keys(found.id, &keys)
            .await
            .inspect_err(|error| self.environment.report(error))?;
        // The same row, unless the organization was replaced since, and found by its own name.
        if keys.name != found.name || found.name.uniqueness_key() != name.uniqueness_key() {
            let id = found.id.to_string();
            self.environment.emit(Event::IntegrityFailure { table: "organizations", id: id.clone() });
            return Err(Refusal::Damaged { table: "organizations", id }.into());
        }
        Ok(found)
    }

    /// Returns all organizations, ordered by name.
    ///
    /// # Errors
    /// The store failed.
    pub async fn organizations(&self) -> Result<Vec<Organization>, Error> {
        Ok(self.store.list_organizations().await?)
    }
}
