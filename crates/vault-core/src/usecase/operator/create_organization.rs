//! Create an organization with keys of its own.

use super::Operator;
use crate::audit::{Actor, AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::organization::{Organization, OrganizationName, OrganizationState};
use crate::port::{CreateOrganization, Event};

impl Operator {
    /// Creates an organization called `name`.
    ///
    /// # Errors
    /// [`Refusal::NameTaken`].
    pub async fn create_organization(&self, name: &str) -> Result<Organization, Error> {
        let name = OrganizationName::parse(name).map_err(|error| error.at("/name"))?;
        let now = self.ambient.now();
        let id = OrganizationId::from_uuid(self.ambient.ids.ordered(now));
        let organization = Organization { id, name, state: OrganizationState::Active, created_at: now };
        let subject = Subject::Organization(id);
        let command = CreateOrganization {
            organization: organization.clone(),
            keys: self.sealer.new_organization_keys(id, now)?,
            audit: self.ambient.record(now, Some(id), Actor::Operator, AuditAction::OrganizationCreated, subject),
        };
        let created = Event::recorded(&command.audit);
        if !self.store.create_organization(command).await? {
            return Err(Refusal::NameTaken.into());
        }
        self.ambient.emit(created);
        Ok(organization)
    }
}
