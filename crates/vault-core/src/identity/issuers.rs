//! Operations on issuers.

use super::{Issuer, IssuerKeySet, IssuerName, StoredIssuer};
use crate::audit::{AuditAction, AuditChange, ChangedField};
use crate::entity::{Entity as _, EntityKey, Index, Kind, Lookup, OF_INSTANCE, Opened};
use crate::error::Refusal;
use crate::id::IssuerId;
use crate::operation::{Access, Failure, Operation, Unit};
use futures_util::try_join;

/// Adds an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddIssuer {
    /// The issuer.
    pub issuer: Issuer,
    /// Its keys.
    pub set: IssuerKeySet,
}

impl Operation for AddIssuer {
    type Outcome = StoredIssuer;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredIssuer, Failure> {
        let Self { issuer, set } = self.clone();
        unit.authorize().await?;
        let id = *issuer.id.as_uuid();
        // Not together: a refusal of the name would cancel the other statements.
        match unit.insert(OF_INSTANCE, id, &issuer).await {
            Err(Failure::Refused(Refusal::NameTaken)) => return Err(Refusal::IssuerExists.into()),
            inserted => inserted?,
        }
        unit.insert(OF_INSTANCE, id, &set).await?;
        record(unit, AuditAction::IssuerAdded, &issuer).await?;
        Ok(StoredIssuer { issuer, set, version: 1 })
    }
}

async fn record(unit: &Unit<'_>, action: AuditAction, issuer: &Issuer) -> Result<(), Failure> {
    let name = AuditChange::new(ChangedField::Issuer, None, Some(issuer.name.to_string()));
    unit.record(None, action, issuer.subject(*issuer.id.as_uuid()).changing([name])).await
}

/// Lists all issuers, ordered by name. Those that do not open are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListIssuers;

impl Operation for ListIssuers {
    type Outcome = Vec<StoredIssuer>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<StoredIssuer>, Failure> {
        unit.authorize().await?;
        let mut issuers = Vec::new();
        for issuer in unit.list::<Issuer>(Index::IssuerName, Some(OF_INSTANCE), None, usize::MAX).await? {
            issuers.extend(with_keys(unit, issuer).await?);
        }
        Ok(issuers)
    }
}

/// Finds the existing issuers among some names. Those that do not open are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindIssuers(pub Vec<IssuerName>);

impl Operation for FindIssuers {
    type Outcome = Vec<StoredIssuer>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<StoredIssuer>, Failure> {
        unit.authorize().await?;
        let mut issuers = Vec::new();
        for name in &self.0 {
            if let Some(issuer) = find(unit, name).await? {
                issuers.extend(with_keys(unit, issuer).await?);
            }
        }
        Ok(issuers)
    }
}

async fn find(unit: &Unit<'_>, name: &IssuerName) -> Result<Option<Opened<Issuer>>, Failure> {
    let lookup = Lookup::new(Index::IssuerName, name.as_str());
    let Some(id) = unit.rows().find(OF_INSTANCE, lookup.index, &lookup.value).await? else { return Ok(None) };
    let row = unit.rows().entity(EntityKey { organization: OF_INSTANCE, kind: Kind::Issuer, id }).await?;
    let opened = row.map(|row| unit.open_or_report::<Issuer>(&row)).transpose()?.flatten();
    Ok(opened.filter(|opened| opened.lookups().contains(&lookup)))
}

/// Reads the keys of an issuer. `None` if they do not open, which is reported.
async fn with_keys(unit: &Unit<'_>, issuer: Opened<Issuer>) -> Result<Option<StoredIssuer>, Failure> {
    let row = unit.rows().entity(EntityKey { kind: Kind::IssuerKeys, ..issuer.key() }).await?;
    let set = row.map(|row| unit.open_or_report::<IssuerKeySet>(&row)).transpose()?.flatten();
    Ok(set.map(|set| StoredIssuer { issuer: issuer.into_value(), version: set.version(), set: set.into_value() }))
}

/// Removes an issuer. Its tokens are refused from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveIssuer(pub IssuerName);

impl Operation for RemoveIssuer {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        unit.authorize().await?;
        let issuer = find(unit, &self.0).await?.ok_or(Refusal::NotFound)?;
        let id = issuer.key().id;
        let removed = try_join!(unit.remove::<Issuer>(OF_INSTANCE, id), unit.remove::<IssuerKeySet>(OF_INSTANCE, id))?;
        if !removed.0 {
            return Err(Refusal::NotFound.into());
        }
        record(unit, AuditAction::IssuerRemoved, &issuer).await
    }
}

/// Records a request for the keys of an issuer, or its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordKeys {
    /// The issuer.
    pub issuer: IssuerId,
    /// Version of the keys that were read.
    pub version: i64,
    /// The keys with the request or response.
    pub set: IssuerKeySet,
}

impl Operation for RecordKeys {
    /// `false` if the issuer was removed, or its keys were changed since they were read. Nothing is changed then.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let found = unit.find::<IssuerKeySet>(OF_INSTANCE, *self.issuer.as_uuid()).await?;
        let Some(before) = found.filter(|found| found.version() == self.version) else { return Ok(false) };
        match unit.replace(&before, &self.set).await {
            // Another process was faster.
            Err(Failure::Damaged { .. }) => Ok(false),
            replaced => {
                replaced?;
                unit.commit_without_entry();
                Ok(true)
            }
        }
    }
}
