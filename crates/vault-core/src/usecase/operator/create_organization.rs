//! Creation of organizations with their own keys.

use super::Operator;
use crate::audit::{Actor, AuditAction, RecordedRow, Subject};
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::organization::{Organization, OrganizationName, OrganizationState};
use crate::port::{CreateOrganization, Event, StoreError};

/// Maximum number of attempts to generate its keys if the instance key is replaced concurrently.
const ATTEMPTS: usize = 5;

impl Operator {
    /// Returns the organization with the name `name`, ignoring ASCII case, and creates it if it does not exist.
    /// Concurrent calls return the same organization.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is invalid.
    pub async fn ensure_organization(&self, name: &str) -> Result<Organization, Error> {
        match self.organization(name).await {
            Err(Error::Refused(Refusal::NoOrganization)) => {}
            found => return found,
        }
        match self.create_organization(name).await {
            Err(Error::Refused(Refusal::NameTaken)) => self.organization(name).await,
            created => created,
        }
    }

    /// Creates an organization with the name `name`.
    ///
    /// # Errors
    /// [`Refusal::NameTaken`] if it exists.
    pub async fn create_organization(&self, name: &str) -> Result<Organization, Error> {
        let name = OrganizationName::parse(name).map_err(|error| error.at("/name"))?;
        let now = self.environment.now();
        let id = OrganizationId::from_uuid(self.environment.ids.ordered(now));
        let organization = Organization { id, name, state: OrganizationState::Active, created_at: now };
        let affected = Subject::Organization(id).left(RecordedRow::Organization, organization.state.recorded());
        for _ in 0..ATTEMPTS {
            let command = CreateOrganization {
                organization: organization.clone(),
                keys: self.sealer.new_organization_keys(id, &organization.name, now)?,
                audit: self.environment.record(
                    now,
                    Some(id),
                    Actor::Operator,
                    AuditAction::OrganizationCreated,
                    affected.clone(),
                ),
            };
            let created = Event::recorded(&command.audit);
            match self.store.create_organization(command).await {
                Ok(true) => {
                    self.environment.emit(created);
                    return Ok(organization);
                }
                Ok(false) => return Err(Refusal::NameTaken.into()),
                Err(StoreError::Refused(Refusal::Contended)) => self.sealer.reload_keys().await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Contended.into())
    }
}
