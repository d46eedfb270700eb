//! Creation of organizations with their own keys.

use super::Operator;
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::organization::{CreateOrganization, Organization, OrganizationName};

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
        let name = OrganizationName::parse(name).map_err(|error| error.at("/organization"))?;
        let id = OrganizationId::from_uuid(self.environment.ids.ordered(self.environment.now()));
        self.run(CreateOrganization { id, name }).await
    }
}
