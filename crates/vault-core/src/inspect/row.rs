//! Inspection of one row.

use super::{NO_KEY, RowFinding, Violation};
use crate::account::{Account, AccountSecrets, SetAsides};
use crate::audit::{Affected, AuditAction, AuditEntry, RecordedRow, RowState, Subject};
use crate::credential::{CardVersion, CredentialType};
use crate::entity::{Entity, EntityKey, Kind, Lookup, OF_INSTANCE, Opened};
use crate::federation::{PublicationChecks, SigningKeys};
use crate::id::{CredentialId, OrganizationId};
use crate::identity::{Issuer, IssuerKeySet};
use crate::integration::Integration;
use crate::invitation::{EnrolmentDraft, Invitation};
use crate::namespace::{Namespace, NamespaceState};
use crate::operation::{Access, Failure, Operation, Unit, rewrapped};
use crate::organization::Organization;
use crate::passcode::PendingSeed;
use crate::port::{
    CredentialContext, EntityRow, EntitySealer, Opener, RecordedStates, RowKey, SealError, StoredRowKey,
};
use crate::receiver::Receiver;
use crate::sealed::SealedData;
use crate::time::Timestamp;
use std::collections::BTreeSet;

/// Number of the newest entries about a row that are read. If they do not explain its state, more are: an operation that waited
/// for the database can have an older entry than many operations that were completed before it.
pub(super) const ENTRIES: [usize; 2] = [8, 10_000];
/// Number of the newest entries about an organization's namespaces that are read.
const NAMESPACES: usize = 1_000;
/// Maximum difference between the clocks of two servers, in milliseconds: each may differ by 2 s from the database's.
/// The order of entries within this time is uncertain.
pub(super) const UNCERTAIN: i64 = 4_000;

/// A row that an integrity check inspects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectedRow {
    /// An entity.
    Entity(EntityKey),
    /// A credential with its versions.
    Credential(StoredRowKey),
    /// A row that audit entries name, and that was not found.
    Absent(RecordedRow, RowKey),
}

/// Selection of the valid privileged rows whose states are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    No,
    /// Rows whose newest entry is older than this.
    Older(Timestamp),
    /// Rows that differ from their recorded state, or have none.
    All,
}

/// Inspects a row with its audit entries, in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectRow {
    pub(super) row: InspectedRow,
    pub(super) records: Records,
}

impl InspectRow {
    /// Inspects this row.
    pub const fn new(row: InspectedRow) -> Self {
        Self { row, records: Records::No }
    }
}

/// Result of the inspection of a row.
#[derive(Debug, Default)]
pub struct Inspected {
    /// Findings about the row.
    pub findings: Vec<RowFinding>,
    /// The state to be recorded, if any.
    pub record: Option<RecordState>,
    /// The data of a credential, if its card opens.
    pub sealed: Option<SealedVersions>,
}

/// The sealed data of a credential's versions.
#[derive(Debug)]
pub struct SealedVersions {
    owner: Organization,
    namespace: Namespace,
    kind: CredentialType,
    versions: Vec<(CredentialContext, SealedData)>,
}

impl SealedVersions {
    /// Decrypts the versions and drops them. Returns the result for each.
    pub fn open(self, opener: &dyn Opener) -> impl Iterator<Item = Result<(), SealError>> {
        self.versions.into_iter().map(move |(context, data)| {
            opener.open(&self.owner.keys, context, &self.namespace, self.kind, &data).map(drop)
        })
    }
}

/// Records the state of a row that was inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordState {
    organization: Option<OrganizationId>,
    affected: Affected,
}

impl Operation for RecordState {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| operation.organization);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        unit.record_by_system(self.organization, AuditAction::StateRecorded, self.affected.clone()).await
    }
}

impl Operation for InspectRow {
    type Outcome = Inspected;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Inspected, Failure> {
        let mut look = Look { unit, records: self.records, seen: Inspected::default() };
        match &self.row {
            InspectedRow::Entity(key) => look.at_entity(*key).await?,
            InspectedRow::Credential((organization, id)) => match (organization.parse(), id.parse()) {
                (Ok(organization), Ok(id)) => look.at_credential(organization, id).await?,
                _ => look.find(RecordedRow::Credential.table(), id, Violation::Unreadable("its ids are none"))?,
            },
            InspectedRow::Absent(row, place) => look.for_deleted(*row, *place).await?,
        }
        Ok(look.seen)
    }
}

/// A row whose states the audit log records, with its current state.
pub(super) struct Recorded {
    pub(super) organization: OrganizationId,
    pub(super) subject: Subject,
    pub(super) row: RecordedRow,
    pub(super) namespace: Option<Namespace>,
    pub(super) state: RowState,
}

impl Recorded {
    /// Returns the operation that records the state.
    pub(super) fn record(&self) -> RecordState {
        // Entries about the instance have no organization.
        let organization = Some(self.organization).filter(|id| *id != OF_INSTANCE);
        let affected = self.subject.left(self.row, self.state);
        RecordState { organization, affected: Affected { namespace: self.namespace.clone(), ..affected } }
    }

    fn id(&self) -> String {
        let text = self.subject.text();
        match &self.namespace {
            Some(namespace) => namespace.to_string(),
            None => text.split_once(':').map_or(&*text, |(_, id)| id).to_owned(),
        }
    }
}

/// One look at a row.
pub(super) struct Look<'u> {
    pub(super) unit: &'u Unit<'u>,
    pub(super) records: Records,
    pub(super) seen: Inspected,
}

impl Look<'_> {
    pub(super) fn find(&mut self, table: &'static str, id: impl ToString, violation: Violation) -> Result<(), Failure> {
        self.require_keys()?;
        self.seen.findings.push(RowFinding::new(table, id, violation));
        Ok(())
    }

    /// What looks damaged may need a key that another process has created. All are loaded once before it counts, and the row is
    /// read again in another snapshot.
    fn require_keys(&self) -> Result<(), Failure> {
        let key = EntityKey { organization: OF_INSTANCE, kind: Kind::Organization, id: *OF_INSTANCE.as_uuid() };
        if self.unit.keys_are_loaded() { Ok(()) } else { Err(Failure::UnknownKey { key }) }
    }

    async fn at_entity(&mut self, key: EntityKey) -> Result<(), Failure> {
        let EntityKey { organization, kind, id } = key;
        let Some(row) = self.unit.rows().entity(key).await? else { return Ok(()) };
        let (affected, is_found) = match inspect(self.unit, &row).await {
            Err(Failure::Damaged { reason, .. }) => {
                return self.find(EntityKey::TABLE, id, Violation::Unreadable(reason));
            }
            Err(Failure::UnknownKey { .. }) => return self.find(EntityKey::TABLE, id, Violation::Unreadable(NO_KEY)),
            inspected => inspected?,
        };
        if let Some(row_kind) = kind.recorded() {
            let Affected { subject, namespace, .. } = affected;
            let state = RowState::Revision(row.version);
            self.compare(&Recorded { organization, subject, row: row_kind, namespace, state }).await?;
        }
        if self.seen.findings.is_empty() && !is_found {
            self.find(EntityKey::TABLE, id, Violation::Lookup { table: "lookups" })?;
        }
        match kind {
            Kind::Organization => self.for_deleted_namespaces(organization).await,
            _ => Ok(()),
        }
    }

    /// Reports namespaces whose state was deleted, although entries record it.
    async fn for_deleted_namespaces(&mut self, organization: OrganizationId) -> Result<(), Failure> {
        let unit = self.unit;
        let mut changed = BTreeSet::new();
        for row in unit.rows().newest_entities(Kind::Namespace, Some(organization), None, usize::MAX).await? {
            // A state that does not open is a finding itself, and may be the one of any namespace.
            let opened = readable(unit, Opened::<NamespaceState>::open(unit.sealer(), &row))?;
            let Some(state) = opened else { return Ok(()) };
            changed.insert(state.into_value().namespace);
        }
        let (subject, row) = (Subject::Namespace, RecordedRow::Namespace);
        let query = RecordedStates { organization, subject, row, namespace: None, limit: NAMESPACES };
        for entry in unit.rows().recorded_entries(&query).await? {
            let Some(Ok(namespace)) = entry.namespace.as_deref().map(str::parse::<Namespace>) else { continue };
            if changed.insert(namespace.clone()) {
                self.find(row.table(), namespace, Violation::Deleted { entry: entry.id })?;
            }
        }
        Ok(())
    }

    async fn at_credential(&mut self, organization: OrganizationId, id: CredentialId) -> Result<(), Failure> {
        let (unit, table) = (self.unit, RecordedRow::Credential.table());
        let Some(whole) = unit.rows().whole_credential(organization, id).await? else { return Ok(()) };
        // One that does not open is a finding itself. The rest of a deleted organization is removed gradually.
        let owner = readable(unit, unit.organization(organization).await)?.flatten();
        let Some(owner) = owner else { return Ok(()) };
        let current = &whole.versions.current;
        let card = match unit.open_card(&owner, current)? {
            Ok(card) => card,
            Err(error) => {
                let finding = RowFinding::of(error).map_err(Failure::Seal)?;
                return self.find(finding.table, finding.id, finding.violation);
            }
        };
        // Another server, whose clock differs, may have deleted a version at the end of its retention.
        let now = unit.now().plus_seconds(UNCERTAIN / 1_000);
        let stored = whole.versions.others.iter().map(|version| (version.number, version.destroy_at));
        let stored: Vec<_> = stored.chain([(current.version, None)]).collect();
        let listed: Vec<_> = card.versions().map(|version| (version.number, version.destroy_at())).collect();
        let is_missing =
            |version: &CardVersion| version.is_kept(now) && !stored.contains(&(version.number, version.destroy_at()));
        if !stored.iter().all(|version| listed.contains(version)) || card.versions().any(is_missing) {
            return self.find(table, id, Violation::Unreadable("its versions differ from its card"));
        }
        if !card.metadata.labels.have(unit.digester(), organization, &whole.labels) {
            self.find(table, id, Violation::Labels)?;
        }
        let (subject, state) = (Subject::Credential(id), RowState::Revision(current.revision));
        let row = RecordedRow::Credential;
        self.compare(&Recorded { organization, subject, row, namespace: None, state }).await?;
        let versions = whole.data.into_iter().filter_map(|fetched| {
            let version = card.version(fetched.version)?;
            Some((current.data_context(organization, version), fetched.data))
        });
        let (versions, kind) = (versions.collect(), card.kind);
        self.seen.sealed =
            Some(SealedVersions { owner: owner.into_value(), namespace: card.namespace, kind, versions });
        Ok(())
    }

    /// Compares a row with the newest entries about it. Its state is to be recorded if that is required.
    async fn compare(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        let (violation, newest) = self.difference(recorded).await?;
        if violation.is_some() {
            self.require_keys()?;
        }
        let is_due = match self.records {
            Records::No => false,
            Records::Older(time) => {
                violation.is_none() && self.seen.findings.is_empty() && newest.is_some_and(|at| at < time)
            }
            Records::All => violation.is_some(),
        };
        match violation {
            _ if is_due => self.seen.record = Some(recorded.record()),
            Some(violation) => self.find(recorded.row.table(), recorded.id(), violation)?,
            None => {}
        }
        Ok(())
    }

    /// Returns how a row differs from the newest entries about it, and the time of the newest one.
    async fn difference(&self, recorded: &Recorded) -> Result<(Option<Violation>, Option<Timestamp>), Failure> {
        let Recorded { organization, subject, row, ref namespace, .. } = *recorded;
        let (mut violation, mut at) = (None, None);
        for limit in ENTRIES {
            let query = RecordedStates { organization, subject, row, namespace: namespace.clone(), limit };
            let entries = self.unit.rows().recorded_entries(&query).await?;
            let Some(newest) = entries.first() else { return Ok((Some(Violation::Unrecorded), None)) };
            if !self.unit.is_genuine(newest) {
                return Ok((Some(Violation::Entry { entry: newest.id.clone() }), None));
            }
            (violation, at) = (self.violation(recorded, newest, &entries), Some(newest.at));
            if violation.is_none() || entries.len() < limit {
                break;
            }
        }
        Ok((violation, at))
    }

    /// Returns how a row differs from the entries about it.
    fn violation(&self, recorded: &Recorded, newest: &AuditEntry, entries: &[AuditEntry]) -> Option<Violation> {
        let Recorded { row, state, .. } = *recorded;
        let is_state = |left: Option<RowState>| left == Some(state);
        let sound: Vec<_> = entries.iter().filter(|entry| self.unit.is_genuine(entry)).collect();
        let last = match row {
            // A replacement of such a row starts its numbering again, so the numbers of these states have no order.
            RecordedRow::Invitation => Some(newest),
            // Entries of two servers may be ordered differently than their changes.
            _ => sound.iter().copied().max_by_key(|entry| entry.left(row).map(RowState::number)),
        };
        let last = last.unwrap_or(newest);
        let recent = |entry: &&&AuditEntry| entry.at.as_millis().saturating_add(UNCERTAIN) >= newest.at.as_millis();
        let is_as_left = match row {
            RecordedRow::Invitation => sound.iter().filter(recent).any(|entry| is_state(entry.left(row))),
            _ => is_state(last.left(row)),
        };
        if is_as_left {
            return None;
        }
        let (entry, removed) = (last.id.clone(), last.left(row) == Some(RowState::Gone));
        Some(if removed { Violation::Removed { entry } } else { Violation::NotAsRecorded { entry } })
    }
}

/// Returns `None` for a row that does not open, which is a finding itself.
pub(super) fn readable<T>(unit: &Unit<'_>, opened: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match opened {
        Err(Failure::Damaged { .. }) => Ok(None),
        Err(Failure::UnknownKey { .. }) if unit.keys_are_loaded() => Ok(None),
        opened => opened.map(Some),
    }
}

type Described = (Affected, Vec<Lookup>);

/// Opens an entity of any kind. Returns the subject of its audit entries, and the values by which it is found.
pub(super) fn opened(unit: &Unit<'_>, row: &EntityRow) -> Result<Described, Failure> {
    fn open<E: Entity>(sealer: &dyn EntitySealer, row: &EntityRow) -> Result<Described, Failure> {
        Opened::<E>::open(sealer, row).map(|entity| (entity.subject(row.key.id), entity.lookups()))
    }
    let open = match row.key.kind {
        Kind::Organization => open::<Organization>,
        Kind::Integration => open::<Integration>,
        Kind::Namespace => open::<NamespaceState>,
        Kind::Receiver => open::<Receiver>,
        Kind::Issuer => open::<Issuer>,
        Kind::IssuerKeys => open::<IssuerKeySet>,
        Kind::SigningKeys => open::<SigningKeys>,
        Kind::PublicationChecks => open::<PublicationChecks>,
        Kind::SetAside => open::<SetAsides>,
        Kind::Invitation => open::<Invitation>,
        Kind::Account => open::<Account>,
        Kind::AccountSecrets => open::<AccountSecrets>,
        Kind::PendingSeed => open::<PendingSeed>,
        Kind::EnrolmentDraft => open::<EnrolmentDraft>,
    };
    open(unit.sealer(), row)
}

/// Opens an entity and reads the rows that belong to it. Returns the subject of its audit entries, and whether all its values
/// lead to it.
async fn inspect(unit: &Unit<'_>, row: &EntityRow) -> Result<(Affected, bool), Failure> {
    let EntityKey { organization, id, .. } = row.key;
    let damaged = |reason| Failure::Damaged { key: row.key, reason };
    let (affected, lookups) = opened(unit, row)?;
    let mut is_found = true;
    for Lookup { index, value } in &lookups {
        is_found &= match index.is_global() {
            true => unit.rows().find_anywhere(*index, value).await? == Some((organization, id)),
            false => unit.rows().find(organization, *index, value).await? == Some(id),
        };
    }
    match row.key.kind {
        // Its keys must unwrap, too.
        Kind::Organization => {
            rewrapped(unit.sealer(), row).map_err(damaged)?;
        }
        Kind::Issuer => is_found &= belongs(unit, row, Kind::IssuerKeys).await?,
        Kind::Account | Kind::AccountSecrets => {
            let account = readable(unit, unit.find::<Account>(organization, id).await)?;
            let secrets = readable(unit, unit.find::<AccountSecrets>(organization, id).await)?;
            if let (Some(account), Some(secrets)) = (account, secrets)
                && account.and_then(|account| account.secrets) != secrets.map(|secrets| secrets.id)
            {
                return Err(damaged("the account and its secrets do not belong together"));
            }
        }
        Kind::PendingSeed | Kind::EnrolmentDraft => {
            let owner = if row.key.kind == Kind::PendingSeed { Kind::Account } else { Kind::Invitation };
            if !belongs(unit, row, owner).await? {
                return Err(damaged("the object to which it belongs does not exist"));
            }
        }
        _ => {}
    }
    Ok((affected, is_found))
}

/// Returns whether an entity of another kind has the same ID.
async fn belongs(unit: &Unit<'_>, row: &EntityRow, kind: Kind) -> Result<bool, Failure> {
    Ok(unit.rows().entity(EntityKey { kind, ..row.key }).await?.is_some())
}
