//! Finding and listing integrations.

use super::{FoundIntegration, Integration, IntegrationName, StoredIntegration};
use crate::digest::Digest;
use crate::entity::{EntityKey, Index, Kind, Lookup, Opened};
use crate::error::Refusal;
use crate::id::{IntegrationId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::NamePosition;
use crate::principal::Scope;
use crate::receiver::{Expiring, ExpiringObject};
use crate::time::Timestamp;
use futures_util::try_join;
use std::collections::BTreeMap;

/// Reference to an integration of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrationRef {
    /// The integration with this ID.
    Id(IntegrationId),
    /// The integration with this name, ignoring ASCII case.
    Name(String),
}

impl IntegrationRef {
    /// Returns the ID of the integration, which need not open.
    pub(super) async fn resolve(
        &self,
        unit: &Unit<'_>,
        organization: OrganizationId,
    ) -> Result<IntegrationId, Failure> {
        match self {
            Self::Id(id) => Ok(*id),
            Self::Name(name) => {
                let Lookup { index, value } = lookup(name)?;
                let found = unit.rows().find(organization, index, &value).await?;
                Ok(IntegrationId::from_uuid(found.ok_or(Refusal::NotFound)?))
            }
        }
    }

    /// Returns the integration, if the principal may see it.
    pub(super) async fn find(
        &self,
        unit: &Unit<'_>,
        organization: OrganizationId,
    ) -> Result<Opened<Integration>, Failure> {
        if !unit.principal().reaches(organization) {
            return Err(Refusal::NotFound.into());
        }
        let found = match self {
            Self::Id(id) => unit.find(organization, *id.as_uuid()).await?,
            Self::Name(name) => unit.find_by(organization, &lookup(name)?).await?,
        };
        found.ok_or_else(|| Refusal::NotFound.into())
    }
}

/// Returns the value by which an integration with this name is found. A malformed name cannot belong to one.
fn lookup(name: &str) -> Result<Lookup, Refusal> {
    let name = IntegrationName::parse(name, "").map_err(|_| Refusal::NotFound)?;
    Ok(Lookup::new(Index::IntegrationName, name.uniqueness_key()))
}

/// Finds an integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindIntegration {
    /// Organization of the integration.
    pub organization: OrganizationId,
    /// The integration.
    pub integration: IntegrationRef,
}

impl Operation for FindIntegration {
    type Outcome = StoredIntegration;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredIntegration, Failure> {
        unit.authorize().await?;
        Ok(self.integration.find(unit, self.organization).await?.into())
    }
}

/// Lists a page of integrations, ordered by organization and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListIntegrations {
    /// Organizations of the integrations.
    pub scope: Scope,
    /// Position after which the page starts. It contains a [`IntegrationName::uniqueness_key`].
    pub after: Option<NamePosition>,
    /// Maximum number of results.
    pub limit: usize,
}

impl Operation for ListIntegrations {
    type Outcome = Vec<StoredIntegration>;
    const ACCESS: Access<Self> = Access::Read(|operation| operation.scope.one());

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<StoredIntegration>, Failure> {
        unit.authorize_for(self.scope).await?;
        let (of, after) = (self.scope.one(), self.after.clone());
        let listed = unit.list::<Integration>(Index::IntegrationName, of, after, self.limit).await?;
        Ok(listed.into_iter().map(StoredIntegration::from).collect())
    }
}

/// Reads the names of integrations. Those that were deleted, or do not open, are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrationNames {
    /// Organization of the integrations.
    pub organization: OrganizationId,
    /// The integrations.
    pub integrations: Vec<IntegrationId>,
}

impl Operation for IntegrationNames {
    type Outcome = BTreeMap<IntegrationId, IntegrationName>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let mut names = BTreeMap::new();
        for id in &self.integrations {
            let key = EntityKey { organization: self.organization, kind: Kind::Integration, id: *id.as_uuid() };
            let Some(row) = unit.rows().entity(key).await? else { continue };
            names.extend(unit.open_or_report::<Integration>(&row)?.map(|found| (*id, found.into_value().name)));
        }
        Ok(names)
    }
}

/// Finds the integration whose current or previous token has this digest. The caller must check whether the token is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindByToken(pub Digest);

impl Operation for FindByToken {
    type Outcome = Option<FoundIntegration>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<FoundIntegration>, Failure> {
        let (rows, lookup) = (unit.rows(), Lookup::new(Index::IntegrationToken, self.0.to_base64()));
        let Some((organization, id)) = rows.find_anywhere(lookup.index, &lookup.value).await? else { return Ok(None) };
        let key = EntityKey { organization, kind: Kind::Integration, id };
        let row = async { Ok(rows.entity(key).await?) };
        let (row, organization) = try_join!(row, unit.organization(organization))?;
        let Some(row) = row else { return Ok(None) };
        let opened = Opened::<Integration>::open(unit.sealer(), &row)?;
        if !opened.lookups().contains(&lookup) {
            return Ok(None);
        }
        let organization_active = organization.is_some_and(|organization| organization.is_active());
        Ok(Some(FoundIntegration { stored: opened.into(), sealed: row.sealed, organization_active }))
    }
}

/// Finds the active integrations of an organization that expire within a period, in the order of their expiry. Those that do
/// not open are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiringIntegrations {
    /// The organization.
    pub organization: OrganizationId,
    /// Exclusive start of the period.
    pub after: Timestamp,
    /// Inclusive end of the period.
    pub until: Timestamp,
    /// Maximum number of results.
    pub limit: usize,
}

impl Operation for ExpiringIntegrations {
    type Outcome = Vec<Expiring>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<Expiring>, Failure> {
        let Self { organization, after, until, limit } = *self;
        let rows = unit.rows().due_entities(organization, Kind::Integration, after, until, limit).await?;
        let mut expiring = Vec::new();
        for row in rows {
            let Some(opened) = unit.open_or_report::<Integration>(&row)? else { continue };
            let Integration { name, expires_at, created_at, .. } = opened.into_value();
            let object = ExpiringObject::Integration(IntegrationId::from_uuid(row.key.id), name.to_string());
            let expiry = |expires_at| Expiring { organization, object, expires_at, known_since: created_at };
            expiring.extend(expires_at.map(expiry));
        }
        Ok(expiring)
    }
}
