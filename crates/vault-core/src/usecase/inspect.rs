//! Integrity check of all stored rows: whether they can be decrypted at their location, and whether a row was rolled back to an
//! earlier state or deleted.

mod deleted;

use super::Environment;
use crate::audit::{Actor, AuditAction, AuditEntry, AuditNote, RecordedRow, RowState, Subject};
use crate::credential::CardVersion;
use crate::entity::{EntityKey, Kind, OF_INSTANCE};
use crate::error::{Error, Refusal};
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::operation::{ChangedNamespaces, EntityKeys, InspectEntity, InspectLookups, InspectedEntity, Operations};
use crate::organization::ReadOrganization;
use crate::port::{
    Event, InspectionStore, LookupRow, MAX_EXISTING, Opener, RecordedStates, RecordedSubject, RowKey, SealError,
    StoreError, StoredRowKey, WholeCredential,
};
use crate::principal::Principal;
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Maximum number of reads of a row that appears damaged. The row, its audit entries and its keys are not read in one
/// snapshot, so a concurrent change can look like damage.
const LOOKS: usize = 4;
/// Number of the newest entries about a row that are read.
const ENTRIES: usize = 8;
/// Number of entries about a row that are read if the newest ones do not explain its state. An operation that waited for the
/// database can have an older entry than many operations that were completed before it.
const MORE_ENTRIES: usize = 10_000;
/// Number of the newest entries about an organization's namespaces that are read.
const NAMESPACES: usize = 1_000;
/// Number of rows per step when states are recorded.
const RECORDED: usize = 256;
/// Maximum difference between the clocks of two servers, in milliseconds: each may differ by 2 s from the database's.
/// The order of entries within this time is uncertain.
const UNCERTAIN: i64 = 4_000;

/// A finding about a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowFinding {
    /// Table of the row.
    pub table: &'static str,
    /// ID of the row.
    pub id: String,
    /// The violation.
    pub violation: Violation,
}

/// Way in which a row differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// The row cannot be decoded, or a related row is missing.
    Unreadable(&'static str),
    /// A column cannot be decrypted.
    Sealed {
        /// Name of the column.
        column: &'static str,
        /// Reason of the failure.
        reason: &'static str,
    },
    /// The stored label digests of a credential differ from its labels.
    Labels,
    /// The row is not in the state that the newest entry about it recorded.
    NotAsRecorded {
        /// ID of the entry.
        entry: String,
    },
    /// The row exists although the newest entry about it recorded its removal.
    Removed {
        /// ID of the entry.
        entry: String,
    },
    /// The row does not exist, although the newest entry about it recorded a state.
    Deleted {
        /// ID of the entry.
        entry: String,
    },
    /// The lookup data does not lead to the row.
    Lookup {
        /// Table that should contain the lookup data.
        table: &'static str,
    },
    /// The row is a version of a credential that does not exist.
    NoCredential,
    /// No audit entry states that the row exists, although every operation records this.
    Unrecorded,
    /// The MAC of an audit entry about the row does not verify.
    Entry {
        /// ID of the entry.
        entry: String,
    },
}

impl fmt::Display for RowFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, id, violation } = self;
        write!(f, "row {id} of table {table} ")?;
        match violation {
            Violation::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
            Violation::Sealed { column, reason } => write!(f, "cannot be decrypted: {column}: {reason}"),
            Violation::Labels => f.write_str("is indexed under other labels than it has"),
            Violation::NotAsRecorded { entry } => {
                write!(
                    f,
                    "differs from its state in audit entry {entry}: it was rolled back or modified outside the service"
                )
            }
            Violation::Removed { entry } => {
                write!(f, "was removed according to audit entry {entry}, and was restored outside the service")
            }
            Violation::Deleted { entry } => {
                write!(f, "exists according to audit entry {entry}, and was deleted outside the service")
            }
            Violation::Lookup { table } => {
                write!(f, "cannot be looked up: table {table} does not refer to it")
            }
            Violation::NoCredential => {
                f.write_str("is a version without a credential: it was moved or kept outside the service")
            }
            Violation::Unrecorded => f.write_str("is in no audit entry: it was restored or added outside the service"),
            Violation::Entry { entry } => {
                write!(f, "has an audit entry that was modified outside the service: {entry}")
            }
        }
    }
}

/// Integrity check of stored rows.
#[derive(Clone)]
pub struct Inspector {
    environment: Environment,
    store: Arc<dyn InspectionStore>,
    operations: Operations,
    /// Decrypts the data of credentials. Without it, the check only verifies that the data exists next to a decryptable card.
    opener: Option<Arc<dyn Opener>>,
    records: Records,
}

/// Selection of the valid privileged rows whose states are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Records {
    No,
    /// Rows whose newest entry is older than this.
    Older(Timestamp),
    /// Rows that differ from their recorded state, or have none.
    All,
}

/// Position of an integrity check.
#[derive(Clone, Debug)]
enum Stage {
    /// Entities of all kinds.
    Entities(Option<EntityKey>),
    /// Values that lead to entities: those that are unique in the instance first.
    Lookups(bool, Option<LookupRow>),
    Credentials(Option<StoredRowKey>),
    Versions(Option<StoredRowKey>),
    /// Rows that audit entries name.
    Recorded(Option<RecordedSubject>),
    End,
}

/// One pass over all rows. The progress is only in memory, so a dropped round starts again.
pub struct InspectionRound {
    inspector: Inspector,
    stage: Stage,
    rows: u64,
}

impl Inspector {
    /// Creates an integrity check on these ports.
    pub const fn new(
        environment: Environment,
        store: Arc<dyn InspectionStore>,
        operations: Operations,
        opener: Option<Arc<dyn Opener>>,
    ) -> Self {
        Self { environment, store, operations, opener, records: Records::No }
    }

    /// Also records the states of valid rows whose newest entry is older than `before` again, so that these entries can be
    /// deleted after a complete round: a row without an entry is a finding.
    #[must_use]
    pub fn renewing(self, before: Timestamp) -> Self {
        Self { records: Records::Older(before), ..self }
    }

    /// Records the state of each valid privileged row that differs from its newest entry, and the removal of issuers,
    /// receivers and invitations that do not exist. Needed after a restore, which replaces rows of an older database by those
    /// of a newer one.
    ///
    /// # Errors
    /// The store failed, or keys cannot be read.
    pub async fn record_states(self) -> Result<(), Error> {
        let mut round = Self { records: Records::All, ..self }.begin();
        while matches!(round.stage, Stage::Entities(_)) {
            round.step(RECORDED, &mut |_| {}).await?;
        }
        round.stage = Stage::Recorded(None);
        while round.step(RECORDED, &mut |_| {}).await? {}
        Ok(())
    }

    /// Starts a round at the first row.
    pub fn begin(&self) -> InspectionRound {
        InspectionRound { inspector: self.clone(), stage: Stage::Entities(None), rows: 0 }
    }
}

impl InspectionRound {
    /// Returns the number of inspected rows. A credential and its versions count as one.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Inspects at most `limit` further rows and passes each finding to `report`. Findings are counted and logged like
    /// damage that a request encounters. Returns `false` if no rows remain.
    ///
    /// # Errors
    /// The store failed, or keys cannot be read. The call can be repeated.
    pub async fn step(&mut self, limit: usize, report: &mut (dyn FnMut(RowFinding) + Send)) -> Result<bool, Error> {
        let store = &self.inspector.store;
        match self.stage.clone() {
            Stage::Entities(after) => {
                let keys = self.inspector.run(EntityKeys { after, limit }).await?;
                self.stage = keys.last().map_or(Stage::Lookups(true, None), |last| Stage::Entities(Some(*last)));
                for key in keys {
                    self.look(Ok(InspectedRow::Entity(key)), report).await?;
                }
            }
            Stage::Lookups(global, after) => {
                let inspected = self.inspector.run(InspectLookups { global, after, limit }).await?;
                self.stage = match inspected.last() {
                    Some((last, _)) => Stage::Lookups(global, Some(last.clone())),
                    None if global => Stage::Lookups(false, None),
                    None => Stage::Credentials(None),
                };
                let table = if global { "global_lookups" } else { "lookups" };
                for (row, _) in inspected.into_iter().filter(|(_, is_listed)| !is_listed) {
                    // Other values say more than the ID: a namespace.
                    let id = if global { row.id.to_string() } else { row.value };
                    self.find(
                        RowFinding { table, id, violation: Violation::Unreadable("no object lists this value") },
                        report,
                    );
                }
            }
            Stage::Credentials(after) => {
                let places = store.credential_places(after, limit).await?;
                if places.is_empty() {
                    self.stage = Stage::Versions(None);
                }
                for stored in places {
                    let place = ids(&stored).map(|(organization, id)| InspectedRow::Credential(organization, id));
                    self.look(place.ok_or((RecordedRow::Credential.table(), &stored)), report).await?;
                    self.stage = Stage::Credentials(Some(stored));
                }
            }
            Stage::Versions(after) => {
                // Versions of existing credentials were inspected with the credential.
                let places = store.version_places(after, limit).await?;
                self.stage =
                    places.last().map_or(Stage::Recorded(None), |(last, _)| Stage::Versions(Some(last.clone())));
                for ((_, id), has_credential) in places {
                    if !has_credential {
                        self.find(
                            RowFinding { table: "credential_secrets", id, violation: Violation::NoCredential },
                            report,
                        );
                    }
                }
            }
            Stage::Recorded(after) => {
                let subjects = store.recorded_subjects(after, limit.min(MAX_EXISTING)).await?;
                self.stage = subjects.last().map_or(Stage::End, |last| Stage::Recorded(Some(last.clone())));
                for (row, place) in self.inspector.absent(&subjects).await? {
                    self.look(Ok(InspectedRow::Absent(row, place)), report).await?;
                }
            }
            Stage::End => return Ok(false),
        }
        Ok(true)
    }

    /// Inspects a row, or reports that the row key of a table is invalid.
    async fn look(
        &mut self,
        place: Result<InspectedRow, (&'static str, &StoredRowKey)>,
        report: &mut (dyn FnMut(RowFinding) + Send),
    ) -> Result<(), Error> {
        let mut seen = Seen::default();
        match place {
            Ok(place) => {
                self.rows += u64::from(!matches!(place, InspectedRow::Absent(..)));
                for _ in 0..LOOKS {
                    seen = self.inspector.look(&place).await?;
                    if seen.findings.is_empty() {
                        break;
                    }
                    self.inspector.operations.ports.digester.refresh().await?;
                }
            }
            Err((table, (_, id))) => {
                self.rows += 1;
                seen.find(table, id, Violation::Unreadable("its ids are none"));
            }
        }
        for finding in seen.findings {
            self.find(finding, report);
        }
        Ok(())
    }

    fn find(&self, finding: RowFinding, report: &mut (dyn FnMut(RowFinding) + Send)) {
        self.inspector.environment.emit(Event::IntegrityFailure { table: finding.table, id: finding.id.clone() });
        report(finding);
    }
}

/// Parses the IDs of a row key. Returns `None` if they are malformed.
fn ids<O: FromStr, I: FromStr>((organization, id): &StoredRowKey) -> Option<(O, I)> {
    Some((organization.parse().ok()?, id.parse().ok()?))
}

/// An entity, a credential with its versions, or a row that was not found.
enum InspectedRow {
    Entity(EntityKey),
    Credential(OrganizationId, CredentialId),
    Absent(RecordedRow, RowKey),
}

/// A row whose states the audit log records, with its current state.
struct Recorded {
    organization: OrganizationId,
    subject: Subject,
    row: RecordedRow,
    namespace: Option<Namespace>,
    state: RowState,
}

/// Result of reading a row once.
#[derive(Default)]
struct Seen {
    findings: Vec<RowFinding>,
}

impl Seen {
    fn find(&mut self, table: &'static str, id: impl ToString, violation: Violation) {
        self.findings.push(RowFinding { table, id: id.to_string(), violation });
    }

    /// Records a finding if the store could not read the row because the row is damaged.
    fn unreadable<T>(&mut self, read: Result<Option<T>, StoreError>) -> Result<Option<T>, Error> {
        match read {
            Err(StoreError::Integrity { table, id, reason }) => {
                self.find(table, id, Violation::Unreadable(reason));
                Ok(None)
            }
            read => Ok(read?),
        }
    }

    /// Records a finding if decryption failed because the row is damaged. Returns `None` in that case.
    fn opened<T>(&mut self, opened: Result<T, SealError>) -> Result<Option<T>, Error> {
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(SealError::Integrity { table, column, object, reason }) => {
                self.find(table, object, Violation::Sealed { column, reason });
                Ok(None)
            }
            Err(SealError::UnknownKey { table, column, object, .. }) => {
                self.find(table, object, Violation::Sealed { column, reason: "it names a key that does not exist" });
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Inspector {
    async fn look(&self, place: &InspectedRow) -> Result<Seen, Error> {
        let mut seen = Seen::default();
        match *place {
            InspectedRow::Entity(key) => self.look_at_entity(key, &mut seen).await?,
            InspectedRow::Credential(organization, id) => {
                if let Some(whole) = seen.unreadable(self.store.whole_credential(organization, id).await)? {
                    self.look_at_credential(organization, &whole, &mut seen).await?;
                }
            }
            InspectedRow::Absent(row, place) => self.look_for_deleted(row, place, &mut seen).await?,
        }
        Ok(seen)
    }

    async fn run<O: crate::operation::Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }

    async fn look_at_entity(&self, key: EntityKey, seen: &mut Seen) -> Result<(), Error> {
        let inspected = match self.run(InspectEntity(key)).await {
            Err(Error::Refused(Refusal::Damaged { .. })) => Some(Err("it names a key that does not exist")),
            inspected => inspected?,
        };
        let InspectedEntity { version, affected, is_found } = match inspected {
            None => return Ok(()),
            Some(Ok(inspected)) => inspected,
            Some(Err(reason)) => {
                seen.find(EntityKey::TABLE, key.id, Violation::Unreadable(reason));
                return Ok(());
            }
        };
        let (organization, state) = (key.organization, RowState::Revision(version));
        let (subject, namespace) = (affected.subject, affected.namespace);
        if let Some(row) = key.kind.recorded() {
            let recorded = Recorded { organization, subject, row, namespace, state };
            self.compare(&recorded, seen).await?;
        }
        if seen.findings.is_empty() && !is_found {
            seen.find(EntityKey::TABLE, key.id, Violation::Lookup { table: "lookups" });
        }
        if key.kind == Kind::Organization {
            self.look_for_namespaces(organization, seen).await?;
        }
        Ok(())
    }

    /// Reports namespaces whose state was deleted, although entries record it.
    async fn look_for_namespaces(&self, organization: OrganizationId, seen: &mut Seen) -> Result<(), Error> {
        // A state that does not open is a finding itself, and may be the one of any namespace.
        let Some(namespaces) = self.run(ChangedNamespaces(organization)).await? else { return Ok(()) };
        let (subject, row) = (Subject::Namespace, RecordedRow::Namespace);
        let query = RecordedStates { organization, subject, row, namespace: None, limit: NAMESPACES };
        let mut deleted = BTreeSet::new();
        for entry in self.store.recorded_states(query).await? {
            let Some(namespace) = entry.namespace.as_deref().and_then(|text| text.parse::<Namespace>().ok()) else {
                continue;
            };
            if !namespaces.contains(&namespace) && deleted.insert(namespace.clone()) {
                seen.find(row.table(), namespace, Violation::Deleted { entry: entry.id });
            }
        }
        Ok(())
    }

    /// Compares a row with the newest entries about it, and records its state if required.
    async fn compare(&self, recorded: &Recorded, seen: &mut Seen) -> Result<(), Error> {
        let before = seen.findings.len();
        let newest = self.find_differences(recorded, seen).await?;
        let differs = seen.findings.len() > before;
        let due = match self.records {
            Records::No => false,
            Records::Older(time) => newest.is_some_and(|at| at < time) && seen.findings.is_empty(),
            Records::All => differs,
        };
        if due {
            self.record_state(recorded).await?;
            seen.findings.truncate(before);
        }
        Ok(())
    }

    async fn record_state(&self, recorded: &Recorded) -> Result<(), Error> {
        let (now, action) = (self.environment.now(), AuditAction::StateRecorded);
        let Recorded { organization, subject, row, namespace, state, .. } = recorded;
        let affected = subject.left(*row, *state);
        let record = match namespace {
            Some(namespace) => {
                let note = AuditNote::of(namespace.clone());
                self.environment.record_on(now, *organization, Actor::System, action, affected, note)
            }
            None => {
                // Entries about the instance have no organization.
                let organization = Some(*organization).filter(|id| *id != OF_INSTANCE);
                self.environment.record(now, organization, Actor::System, action, affected)
            }
        };
        let event = Event::recorded(&record);
        self.store.append(vec![record]).await?;
        self.environment.emit(event);
        Ok(())
    }

    async fn look_at_credential(
        &self,
        organization: OrganizationId,
        whole: &WholeCredential,
        seen: &mut Seen,
    ) -> Result<(), Error> {
        let (ports, current) = (&self.operations.ports, &whole.versions.current);
        let (table, id) = (RecordedRow::Credential.table(), current.id);
        let owner = match self.run(ReadOrganization(organization)).await {
            Err(Error::Refused(Refusal::Damaged { .. })) => return Ok(()), // a finding itself
            owner => owner?,
        };
        // The rest of a deleted organization is removed gradually.
        let Some(owner) = owner else { return Ok(()) };
        let Some(card) = seen.opened(current.open(&*ports.credentials, &owner))? else { return Ok(()) };
        // Another server, whose clock differs, may have deleted a version at the end of its retention.
        let now = self.environment.now().plus_seconds(UNCERTAIN / 1_000);
        let stored = whole.versions.others.iter().map(|version| (version.number, version.destroy_at));
        let stored: Vec<_> = stored.chain([(current.version, None)]).collect();
        let listed: Vec<_> = card.versions().map(|version| (version.number, version.destroy_at())).collect();
        let is_missing =
            |version: &CardVersion| version.is_kept(now) && !stored.contains(&(version.number, version.destroy_at()));
        if !stored.iter().all(|version| listed.contains(version)) || card.versions().any(is_missing) {
            seen.find(table, id, Violation::Unreadable("its versions differ from its card"));
            return Ok(());
        }
        if let Some(opener) = &self.opener {
            for fetched in &whole.data {
                let Some(version) = card.version(fetched.version) else { continue };
                let context = current.data_context(organization, version);
                let opened = opener.open(&owner.keys, context, &card.namespace, card.kind, &fetched.data);
                seen.opened(opened)?;
            }
        }
        if !card.metadata.labels.have(&*ports.digester, organization, &whole.labels) {
            seen.find(table, id, Violation::Labels);
        }
        let (subject, state) = (Subject::Credential(id), RowState::Revision(current.revision));
        let recorded = Recorded { organization, subject, row: RecordedRow::Credential, namespace: None, state };
        self.compare(&recorded, seen).await
    }

    /// Reports how a row differs from the newest entries about it. Returns the time of the newest one.
    async fn find_differences(&self, recorded: &Recorded, seen: &mut Seen) -> Result<Option<Timestamp>, Error> {
        let Recorded { organization, subject, row, ref namespace, .. } = *recorded;
        let text = subject.text();
        let id = match namespace {
            Some(namespace) => namespace.as_str(),
            None => text.split_once(':').map_or(text.as_str(), |(_, id)| id),
        };
        let mut limit = ENTRIES;
        loop {
            let query = RecordedStates { organization, subject, row, namespace: namespace.clone(), limit };
            let entries = self.store.recorded_states(query).await?;
            let Some(newest) = entries.first() else {
                seen.find(row.table(), id, Violation::Unrecorded);
                return Ok(None);
            };
            if !newest.is_genuine(&*self.environment.audit) {
                seen.find(row.table(), id, Violation::Entry { entry: newest.id.clone() });
                return Ok(None);
            }
            match self.difference(recorded, newest, &entries) {
                Some(_) if entries.len() == limit && limit < MORE_ENTRIES => limit = MORE_ENTRIES,
                violation => {
                    if let Some(violation) = violation {
                        seen.find(row.table(), id, violation);
                    }
                    return Ok(Some(newest.at));
                }
            }
        }
    }

    /// Returns how a row differs from the entries about it.
    fn difference(&self, recorded: &Recorded, newest: &AuditEntry, entries: &[AuditEntry]) -> Option<Violation> {
        let Recorded { row, state, .. } = *recorded;
        let is_state = |left: Option<RowState>| left == Some(state);
        let sound: Vec<_> = entries.iter().filter(|entry| entry.is_genuine(&*self.environment.audit)).collect();
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
