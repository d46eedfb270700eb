//! Operations on entities of all kinds: integrity check.

use super::reseal::rewrapped;
use super::{Access, Failure, Operation, Unit};
use crate::account::{Account, AccountSecrets, SetAsides};
use crate::audit::Affected;
use crate::entity::{Entity, EntityKey, Index, Kind, Lookup, Opened};
use crate::federation::{PublicationChecks, SigningKeys};
use crate::id::OrganizationId;
use crate::identity::{Issuer, IssuerKeySet};
use crate::integration::Integration;
use crate::invitation::{EnrolmentDraft, Invitation};
use crate::namespace::{Namespace, NamespaceState};
use crate::organization::Organization;
use crate::passcode::PendingSeed;
use crate::port::{EntityRow, LookupRow};
use crate::receiver::Receiver;
use uuid::Uuid;

/// Number of rows per read of [`ChangedNamespaces`].
const STEP: usize = 500;

/// Reads the keys of entities of all kinds in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityKeys {
    /// Key after which the page starts.
    pub after: Option<EntityKey>,
    /// Maximum number of rows.
    pub limit: usize,
}

impl Operation for EntityKeys {
    type Outcome = Vec<EntityKey>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<EntityKey>, Failure> {
        let rows = unit.rows().entities_after(self.after, self.limit).await?;
        Ok(rows.into_iter().map(|row| row.key).collect())
    }
}

/// Reads an entity for an integrity check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectEntity(pub EntityKey);

/// An entity as an integrity check sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedEntity {
    /// Its version.
    pub version: i64,
    /// Subject of its audit entries.
    pub affected: Affected,
    /// True if all its values lead to it.
    pub is_found: bool,
}

impl Operation for InspectEntity {
    /// `None` if it does not exist. The error is why it does not open.
    type Outcome = Option<Result<InspectedEntity, &'static str>>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let Some(row) = unit.rows().entity(self.0).await? else { return Ok(None) };
        let inspected = match row.key.kind {
            // Its keys must unwrap, too.
            Kind::Organization => match rewrapped(unit.sealer(), &row) {
                Ok(_) => inspect::<Organization>(unit, &row).await,
                Err(reason) => Err(Failure::Damaged { key: row.key, reason }),
            },
            Kind::Integration => inspect::<Integration>(unit, &row).await,
            Kind::Namespace => inspect::<NamespaceState>(unit, &row).await,
            Kind::Receiver => inspect::<Receiver>(unit, &row).await,
            Kind::Issuer => {
                let keys = EntityKey { kind: Kind::IssuerKeys, ..row.key };
                let keys = unit.rows().entity(keys).await?;
                let issuer = inspect::<Issuer>(unit, &row).await;
                issuer.map(|issuer| InspectedEntity { is_found: issuer.is_found && keys.is_some(), ..issuer })
            }
            Kind::IssuerKeys => inspect::<IssuerKeySet>(unit, &row).await,
            Kind::SigningKeys => inspect::<SigningKeys>(unit, &row).await,
            Kind::PublicationChecks => inspect::<PublicationChecks>(unit, &row).await,
            Kind::SetAside => inspect::<SetAsides>(unit, &row).await,
            Kind::Invitation => inspect::<Invitation>(unit, &row).await,
            Kind::Account | Kind::AccountSecrets => inspect_account(unit, &row).await,
            Kind::PendingSeed => inspect_owned::<PendingSeed>(unit, &row, Kind::Account).await,
            Kind::EnrolmentDraft => inspect_owned::<EnrolmentDraft>(unit, &row, Kind::Invitation).await,
        };
        match inspected {
            Err(Failure::Damaged { reason, .. }) => Ok(Some(Err(reason))),
            inspected => inspected.map(|inspected| Some(Ok(inspected))),
        }
    }
}

async fn inspect<E: Entity>(unit: &Unit<'_>, row: &EntityRow) -> Result<InspectedEntity, Failure> {
    let entity = Opened::<E>::open(unit.sealer(), row)?;
    let mut is_found = true;
    for lookup in entity.lookups() {
        let place = (row.key.organization, row.key.id);
        is_found &= match lookup.index.is_global() {
            true => unit.rows().find_anywhere(lookup.index, &lookup.value).await? == Some(place),
            false => unit.rows().find(place.0, lookup.index, &lookup.value).await? == Some(place.1),
        };
    }
    Ok(InspectedEntity { version: row.version, affected: entity.subject(row.key.id), is_found })
}

/// Inspects an account or its secrets: the account must name the secrets that exist.
async fn inspect_account(unit: &Unit<'_>, row: &EntityRow) -> Result<InspectedEntity, Failure> {
    let EntityKey { organization, kind, id } = row.key;
    let inspected = match kind {
        Kind::Account => inspect::<Account>(unit, row).await?,
        _ => inspect::<AccountSecrets>(unit, row).await?,
    };
    let (account, secrets) =
        (unit.find::<Account>(organization, id).await, unit.find::<AccountSecrets>(organization, id).await);
    // One that does not open is a finding itself.
    let (Ok(account), Ok(secrets)) = (account, secrets) else { return Ok(inspected) };
    match account.and_then(|account| account.secrets) == secrets.map(|secrets| secrets.id) {
        true => Ok(inspected),
        false => Err(Failure::Damaged { key: row.key, reason: "the account and its secrets do not belong together" }),
    }
}

/// Inspects a document that belongs to another one with the same ID.
async fn inspect_owned<E: Entity>(unit: &Unit<'_>, row: &EntityRow, kind: Kind) -> Result<InspectedEntity, Failure> {
    let inspected = inspect::<E>(unit, row).await?;
    match unit.rows().entity(EntityKey { kind, ..row.key }).await? {
        Some(_) => Ok(inspected),
        None => Err(Failure::Damaged { key: row.key, reason: "the object to which it belongs does not exist" }),
    }
}

/// Reads lookups, and finds those that no entity lists: one step of an integrity check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectLookups {
    /// True for those that are unique in the instance.
    pub global: bool,
    /// Row after which the step starts.
    pub after: Option<LookupRow>,
    /// Maximum number of rows.
    pub limit: usize,
}

impl Operation for InspectLookups {
    /// Each row, and whether an entity lists it. Entities that do not open are findings themselves.
    type Outcome = Vec<(LookupRow, bool)>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let mut inspected = Vec::new();
        let rows = match self.global {
            true => unit.rows().global_lookups_after(self.after.clone(), self.limit).await?,
            false => unit.rows().lookups_after(self.after.clone(), self.limit).await?,
        };
        for row in rows {
            let is_listed = match row.index.parse::<Index>() {
                Ok(index) => match index.kind() {
                    Kind::Organization => lists::<Organization>(unit, index, &row).await?,
                    Kind::Integration => lists::<Integration>(unit, index, &row).await?,
                    Kind::Namespace => lists::<NamespaceState>(unit, index, &row).await?,
                    Kind::Receiver => lists::<Receiver>(unit, index, &row).await?,
                    Kind::Issuer => lists::<Issuer>(unit, index, &row).await?,
                    Kind::IssuerKeys => lists::<IssuerKeySet>(unit, index, &row).await?,
                    Kind::SigningKeys => lists::<SigningKeys>(unit, index, &row).await?,
                    Kind::PublicationChecks => lists::<PublicationChecks>(unit, index, &row).await?,
                    Kind::SetAside => lists::<SetAsides>(unit, index, &row).await?,
                    Kind::Invitation => lists::<Invitation>(unit, index, &row).await?,
                    Kind::Account => lists::<Account>(unit, index, &row).await?,
                    Kind::AccountSecrets => lists::<AccountSecrets>(unit, index, &row).await?,
                    Kind::PendingSeed => lists::<PendingSeed>(unit, index, &row).await?,
                    Kind::EnrolmentDraft => lists::<EnrolmentDraft>(unit, index, &row).await?,
                },
                Err(_) => false,
            };
            inspected.push((row, is_listed));
        }
        Ok(inspected)
    }
}

async fn lists<E: Entity>(unit: &Unit<'_>, index: Index, row: &LookupRow) -> Result<bool, Failure> {
    match unit.find::<E>(row.organization, row.id).await {
        Ok(entity) => Ok(entity.is_some_and(|entity| entity.lookups().contains(&Lookup::new(index, &*row.value)))),
        Err(Failure::Damaged { .. }) => Ok(true),
        // Not an error of the check: the entity is a finding itself.
        Err(Failure::UnknownKey { .. }) if unit.keys_are_loaded() => Ok(true),
        Err(failure) => Err(failure),
    }
}

/// Reads the namespaces of an organization whose state was ever changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedNamespaces(pub OrganizationId);

impl Operation for ChangedNamespaces {
    /// `None` if the state of one of them does not open.
    type Outcome = Option<Vec<Namespace>>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let mut after = EntityKey { organization: self.0, kind: Kind::Namespace, id: Uuid::nil() };
        let mut namespaces = Vec::new();
        loop {
            let rows = unit.rows().entities_after(Some(after), STEP).await?;
            let is_last = rows.len() < STEP;
            for row in rows {
                if (row.key.organization, row.key.kind) != (self.0, Kind::Namespace) {
                    return Ok(Some(namespaces));
                }
                after = row.key;
                match Opened::<NamespaceState>::open(unit.sealer(), &row) {
                    Ok(opened) => namespaces.push(opened.into_value().namespace),
                    Err(_) => return Ok(None),
                }
            }
            if is_last {
                return Ok(Some(namespaces));
            }
        }
    }
}
