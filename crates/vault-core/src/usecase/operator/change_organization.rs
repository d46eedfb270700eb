//! Disable, enable, delete or list organizations.

use super::Operator;
use crate::audit::{Actor, AuditAction, RecordedRow, RowState, Subject};
use crate::error::{Error, Refusal};
use crate::organization::{Organization, OrganizationName, OrganizationState};
use crate::port::{DeleteOrganization, Event, SetOrganizationState};

/// What to do with an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrganizationCommand {
    /// Nobody logs in any more; every session ends; integrations are refused.
    Disable,
    /// Its accounts may log in again, and its integrations' tokens work again.
    Enable,
    /// It is deleted for good, with its accounts, credentials and keys.
    Delete,
}

impl Operator {
    /// Carries `command` out on the organization called `name`, and says which it was.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`].
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

    /// The organization called `name`, without regard to ASCII case.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`].
    pub async fn organization(&self, name: &str) -> Result<Organization, Error> {
        let name = OrganizationName::parse(name).map_err(|_| Refusal::NoOrganization)?;
        Ok(self.store.find_organization(&name).await?.ok_or(Refusal::NoOrganization)?)
    }

    /// Every organization, by name.
    ///
    /// # Errors
    /// The store failed.
    pub async fn organizations(&self) -> Result<Vec<Organization>, Error> {
        Ok(self.store.list_organizations().await?)
    }
}
