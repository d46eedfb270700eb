//! Finding and listing organizations.

use super::{Organization, OrganizationName};
use crate::entity::{Index, Opened};
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};

/// Finds an organization by its name, ignoring ASCII case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindOrganization(pub OrganizationName);

impl Operation for FindOrganization {
    type Outcome = Option<Organization>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<Organization>, Failure> {
        unit.authorize().await?;
        let lookup = Organization::lookup(&self.0);
        let found = unit.rows().find_anywhere(lookup.index, &lookup.value).await?;
        let Some((id, _)) = found else { return Ok(None) };
        let Some(found) = unit.organization(id).await? else { return Ok(None) };
        // Everything that follows would happen in another organization than the operator has named.
        match found.lookups().contains(&lookup) {
            true => Ok(Some(found.into_value())),
            false => Err(Failure::Damaged { key: found.key(), reason: "another name leads to it" }),
        }
    }
}

/// Reads an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOrganization(pub OrganizationId);

impl Operation for ReadOrganization {
    /// `None` if it does not exist, or the principal may not see it.
    type Outcome = Option<Organization>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<Organization>, Failure> {
        unit.authorize().await?;
        if !unit.principal().reaches(self.0) {
            return Ok(None);
        }
        Ok(unit.organization(self.0).await?.map(Opened::into_value))
    }
}

/// Lists all organizations, ordered by name. Those that do not open are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOrganizations;

impl Operation for ListOrganizations {
    type Outcome = Vec<Organization>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<Organization>, Failure> {
        unit.authorize().await?;
        // Their rows belong to themselves, so they are read in the order of their IDs.
        let listed = unit.list::<Organization>(Index::OrganizationState, None, None, usize::MAX).await?;
        let mut organizations: Vec<_> = listed.into_iter().map(Opened::into_value).collect();
        organizations.dedup_by_key(|organization| organization.id);
        organizations.sort_by_key(|organization| organization.name.uniqueness_key());
        Ok(organizations)
    }
}
