//! Context of an operation: rows, ports without I/O, principal and time.

use super::{Failure, Ports};
use crate::account::Account;
use crate::audit::{Actor, Affected, AuditAction, AuditEntry, RecordedRow, RowState, SealedAuditRecord};
use crate::credential::{Card, Fingerprint, SecretBytes};
use crate::entity::{Entity, EntityKey, Index, Kind, Lookup, Opened};
use crate::error::Refusal;
use crate::id::{KeyId, OrganizationId};
use crate::integration::{IntegrationFacts, IntegrationPrincipal, IntegrationRefusal, check_integration};
use crate::namespace::Namespace;
use crate::organization::Organization;
use crate::port::{
    CardContext, CredentialContext, EntityRow, EntitySealer, Event, KeyedDigester, NamePosition, RecordedStates, Rows,
    RowsError, SealError, Sealer, StoredCredential,
};
use crate::principal::{Denial, Principal, Scope, SessionFacts, check_session};
use crate::sealed::{Blob, SealedData};
use crate::time::Timestamp;
use crate::usecase::Environment;
use futures_util::future::try_join_all;
use futures_util::try_join;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;
use zeroize::Zeroizing;

/// Number of the newest entries about a row that are compared with it.
const ENTRIES: usize = 8;
/// Number of entries that are compared if the newest ones do not record the row. A change that waited for its lock, or of a
/// server whose clock is behind, has an older entry than changes that were committed before it.
const MORE_ENTRIES: usize = 10_000;

/// One run of an operation in a transaction.
pub struct Unit<'t> {
    rows: &'t dyn Rows,
    ports: &'t Ports,
    environment: &'t Environment,
    principal: &'t Principal,
    now: Timestamp,
    /// True if all existing keys were loaded for this run.
    keys_are_loaded: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Rows that were written, for the audit entry.
    written: Vec<(RecordedRow, RowState)>,
    commits: bool,
    /// Events of the run, which are emitted if it is committed.
    events: Vec<Event>,
    organization: Option<Opened<Organization>>,
}

impl<'t> Unit<'t> {
    pub(super) fn new(
        rows: &'t dyn Rows,
        ports: &'t Ports,
        environment: &'t Environment,
        principal: &'t Principal,
        keys_are_loaded: bool,
    ) -> Self {
        let now = environment.now();
        Self { rows, ports, environment, principal, now, keys_are_loaded, state: Mutex::default() }
    }

    /// Returns the rows of the transaction.
    pub fn rows(&self) -> &'t dyn Rows {
        self.rows
    }

    /// Returns the port that seals documents.
    pub fn sealer(&self) -> &'t dyn EntitySealer {
        &*self.ports.sealer
    }

    /// Returns the port that computes digests. Operations load no keys with it.
    pub(crate) fn digester(&self) -> &'t dyn KeyedDigester {
        &*self.ports.digester
    }

    /// Checks that a row was signed with the active instance key, which stays active until the transaction ends. A vault
    /// without an instance has no key to compare with.
    ///
    /// # Errors
    /// [`Failure::Overtaken`] if another key is active.
    pub(crate) async fn require_active_key(&self, signed: KeyId) -> Result<(), Failure> {
        match self.rows.active_instance_key().await? {
            Some(active) if active != signed => Err(Failure::Overtaken),
            _ => Ok(()),
        }
    }

    /// Returns whether the MAC of an audit entry verifies.
    pub(crate) fn is_genuine(&self, entry: &AuditEntry) -> bool {
        entry.is_genuine(&*self.environment.audit)
    }

    /// Returns the principal that asks for the operation.
    pub fn principal(&self) -> &'t Principal {
        self.principal
    }

    /// Returns whether all existing keys were loaded for this run, so that a key that is not loaded does not exist.
    pub(crate) const fn keys_are_loaded(&self) -> bool {
        self.keys_are_loaded
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Authorizes the principal from its session and the documents of its account and organization.
    ///
    /// # Errors
    /// [`Failure::Denied`] if it may no longer make requests.
    pub async fn authorize(&self) -> Result<(), Failure> {
        match self.principal {
            Principal::Operator => Ok(()),
            Principal::Session(session) => {
                let (is_active, account, expires_at) = try_join!(
                    self.is_active(session.organization),
                    self.find::<Account>(session.organization, *session.account.as_uuid()),
                    flat(self.rows.session_expiry(session)),
                )?;
                let active = account.filter(|account| account.is_active());
                let facts = SessionFacts {
                    session_live: expires_at.is_some_and(|expires_at| self.now < expires_at),
                    active: active.map(|account| (account.grant.role, account.sessions)),
                };
                Ok(check_session(session, is_active, facts)?)
            }
            Principal::Embedder(embedder) => match self.is_active(embedder.organization).await? {
                true => Ok(()),
                false => Err(Denial::OrganizationDisabled.into()),
            },
        }
    }

    /// Reads rows and authorizes the principal, in one exchange with the database. The facts are read at the same time as
    /// the rows or later, so a principal that lost a right before then reads nothing.
    ///
    /// # Errors
    /// Those of [`Unit::authorize`].
    pub async fn authorized<T>(&self, rows: impl Future<Output = Result<T, RowsError>> + Send) -> Result<T, Failure> {
        let (rows, ()) = try_join!(flat(rows), self.authorize())?;
        Ok(rows)
    }

    async fn is_active(&self, organization: OrganizationId) -> Result<bool, Failure> {
        Ok(self.organization(organization).await?.is_some_and(|organization| organization.is_active()))
    }

    /// Reads an organization.
    ///
    /// # Errors
    /// Those of [`Unit::find`].
    pub async fn organization(&self, id: OrganizationId) -> Result<Option<Opened<Organization>>, Failure> {
        let found = self.find::<Organization>(id, *id.as_uuid()).await?;
        self.state().organization.clone_from(&found);
        Ok(found)
    }

    /// Returns an organization with its keys, which was usually read to authorize the principal.
    ///
    /// # Errors
    /// [`Denial::OrganizationDisabled`] if it was deleted, and those of [`Unit::find`].
    pub async fn owner(&self, id: OrganizationId) -> Result<Opened<Organization>, Failure> {
        let read = self.state().organization.clone().filter(|read| read.id == id);
        match read {
            Some(read) => Ok(read),
            None => Ok(self.organization(id).await?.ok_or(Denial::OrganizationDisabled)?),
        }
    }

    /// Returns an organization whose active key seals: its document must be the newest one that the audit log records, so that a key
    /// that was destroyed and put back outside the service never seals. A process asks the log once for each version.
    ///
    /// # Errors
    /// [`Failure::Damaged`] if the document is older, and those of [`Unit::owner`].
    pub(crate) async fn sealing_owner(&self, id: OrganizationId) -> Result<Opened<Organization>, Failure> {
        let owner = self.owner(id).await?;
        if self.ports.newest.get(&id) != Some(owner.version()) {
            if !self.is_last_recorded(&owner).await? {
                let reason = "older than the audit log records: the row was put back outside the service";
                return Err(Failure::Damaged { key: owner.key(), reason });
            }
            self.ports.newest.insert(id, owner.version());
        }
        Ok(owner)
    }

    /// Returns the port that seals credentials and opens their cards.
    pub fn credentials(&self) -> &'t dyn Sealer {
        &*self.ports.credentials
    }

    /// Returns the fingerprint of data.
    ///
    /// # Errors
    /// Those of [`Sealer::fingerprint`].
    pub fn fingerprint(&self, owner: &Organization, data: &SecretBytes) -> Result<Fingerprint, Failure> {
        self.credentials().fingerprint(owner.id, &owner.keys, data).map_err(Failure::Seal)
    }

    /// Seals the card of a credential, and counts the use of the key.
    ///
    /// # Errors
    /// Those of [`Sealer::seal_card`].
    pub fn seal_card(&self, owner: &Organization, context: CardContext, card: &Card) -> Result<Blob, Failure> {
        self.count_uses(owner, 1);
        self.credentials().seal_card(&owner.keys, context, card).map_err(Failure::Seal)
    }

    /// Seals the data of a version, with another key derived from that of the organization than the card.
    ///
    /// # Errors
    /// Those of [`Sealer::seal`].
    pub fn seal_data(
        &self,
        owner: &Organization,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
    ) -> Result<SealedData, Failure> {
        self.credentials().seal(&owner.keys, context, namespace, data).map_err(Failure::Seal)
    }

    /// Counts uses of the active key of an organization.
    pub(crate) fn count_uses(&self, owner: &Organization, uses: i64) {
        self.ports.uses.add(owner.id, owner.keys.active.id, uses);
    }

    /// Opens the card of a row. A card that does not open is an error of its row and not of the operation, unless its key may
    /// have been added since the keys were read.
    ///
    /// # Errors
    /// [`SealError::UnknownKey`], the first time.
    pub fn open_card(&self, owner: &Organization, row: &StoredCredential) -> Result<Result<Card, SealError>, Failure> {
        match row.open(self.credentials(), owner) {
            Err(error @ SealError::UnknownKey { .. }) if !self.keys_are_loaded => Err(Failure::Seal(error)),
            opened => Ok(opened),
        }
    }

    /// Opens the card of a row that is shown. Reports one that does not open.
    ///
    /// # Errors
    /// Those of [`Unit::open_card`].
    pub fn card_or_report(
        &self,
        owner: &Organization,
        row: &StoredCredential,
    ) -> Result<Result<Card, SealError>, Failure> {
        Ok(self.open_card(owner, row)?.inspect_err(|error| self.report_damage(error)))
    }

    /// Checks that the principal may see a scope, and authorizes it.
    ///
    /// # Errors
    /// [`Failure::Denied`] if it may not.
    pub async fn authorize_for(&self, scope: Scope) -> Result<(), Failure> {
        if !self.principal.may_see(scope) {
            return Err(Denial::InsufficientRole.into());
        }
        self.authorize().await
    }

    /// Reads an entity.
    ///
    /// # Errors
    /// [`Failure::Damaged`] if it does not open.
    pub async fn find<E: Entity>(&self, organization: OrganizationId, id: Uuid) -> Result<Option<Opened<E>>, Failure> {
        let key = EntityKey { organization, kind: E::KIND, id };
        self.rows.entity(key).await?.map(|row| Opened::open(self.sealer(), &row)).transpose()
    }

    /// Reads the entity to which a value leads, if its document lists the value.
    ///
    /// # Errors
    /// Those of [`Unit::find`].
    pub async fn find_by<E: Entity>(
        &self,
        organization: OrganizationId,
        lookup: &Lookup,
    ) -> Result<Option<Opened<E>>, Failure> {
        let Some(id) = self.rows.find(organization, lookup.index, &lookup.value).await? else { return Ok(None) };
        let found = self.find::<E>(organization, id).await?;
        Ok(found.filter(|found| found.lookups().contains(lookup)))
    }

    /// Opens a row. Reports and omits one that does not open, where it must not hide others.
    ///
    /// # Errors
    /// [`Failure::UnknownKey`] if the keys were not loaded since.
    pub fn open_or_report<E: Entity>(&self, row: &EntityRow) -> Result<Option<Opened<E>>, Failure> {
        let opened = self.open(row)?;
        if opened.is_none() {
            self.state().events.push(row.key.damaged());
        }
        Ok(opened)
    }

    /// Opens a row that must be in the state that was recorded last. `None` if it does not open, or was put back outside the
    /// service, which the caller reports.
    ///
    /// # Errors
    /// [`Failure::UnknownKey`] if the keys were not loaded since, or the store failed.
    pub async fn open_last_recorded<E: Entity>(&self, row: &EntityRow) -> Result<Option<Opened<E>>, Failure> {
        match self.open(row)? {
            Some(opened) if self.is_last_recorded(&opened).await? => Ok(Some(opened)),
            _ => Ok(None),
        }
    }

    fn open<E: Entity>(&self, row: &EntityRow) -> Result<Option<Opened<E>>, Failure> {
        match Opened::open(self.sealer(), row) {
            Ok(opened) => Ok(Some(opened)),
            Err(Failure::UnknownKey { key }) if !self.keys_are_loaded => Err(Failure::UnknownKey { key }),
            Err(_) => Ok(None),
        }
    }

    /// Reads entities in the order of an index, of one organization or of all. Omits rows that a planted value leads to, and
    /// those that do not open, which are reported: one of them must not hide the others.
    ///
    /// # Errors
    /// [`Failure::UnknownKey`] if the keys were not loaded since, or the store failed.
    pub async fn list<E: Entity>(
        &self,
        index: Index,
        of: Option<OrganizationId>,
        mut after: Option<NamePosition>,
        limit: usize,
    ) -> Result<Vec<Opened<E>>, Failure> {
        let mut listed = Vec::new();
        while listed.len() < limit {
            let wanted = limit - listed.len();
            let rows = self.rows.listed_entities(index, of, after.clone(), wanted).await?;
            let is_last = rows.len() < wanted;
            for (value, row) in rows {
                after = Some(NamePosition { organization: row.key.organization, name: value });
                let opened = self.open_or_report::<E>(&row)?;
                listed.extend(opened.filter(|opened| opened.lookups().iter().any(|lookup| lookup.index == index)));
            }
            if is_last {
                break;
            }
        }
        Ok(listed)
    }

    /// Inserts an entity.
    ///
    /// # Errors
    /// [`Refusal::NameTaken`] if one of its values leads to another entity.
    pub async fn insert<E: Entity>(&self, organization: OrganizationId, id: Uuid, value: &E) -> Result<(), Failure> {
        self.insert_as(organization, id, 1, value).await
    }

    /// Inserts an entity whose numbering continues an earlier one.
    ///
    /// # Errors
    /// Those of [`Unit::insert`].
    pub async fn insert_as<E: Entity>(
        &self,
        organization: OrganizationId,
        id: Uuid,
        version: i64,
        value: &E,
    ) -> Result<(), Failure> {
        let key = EntityKey { organization, kind: E::KIND, id };
        let row = self.sealed(key, version, value)?;
        let lookups = value.lookups(id);
        let entered = lookups.iter().map(|lookup| self.rows.enter(key, lookup.index, &lookup.value));
        let (active, entered, inserted) =
            try_join!(self.rows.active_instance_key(), try_join_all(entered), self.rows.insert_entity(&row))?;
        if active.is_some_and(|active| row.sealed.key() != Some(active)) {
            return Err(Failure::Overtaken);
        }
        if !inserted || entered.contains(&false) {
            return Err(Refusal::NameTaken.into());
        }
        self.wrote(key, RowState::Revision(version));
        Ok(())
    }

    /// Replaces an entity that was read, if its version is the last recorded one.
    ///
    /// # Errors
    /// - [`Refusal::NameTaken`] if a new value leads to another entity.
    /// - [`Failure::Damaged`] if the row is older than the audit log records, or was removed according to it: an operation
    ///   never signs a row again that was put back outside the service.
    pub async fn replace<E: Entity>(&self, before: &Opened<E>, after: &E) -> Result<(), Failure> {
        let key = before.key();
        let row = self.sealed(key, before.version() + 1, after)?;
        let (old, new) = (before.lookups(), after.lookups(key.id));
        let gone = old.iter().filter(|lookup| !new.contains(lookup));
        let gone = gone.map(|lookup| self.rows.leave(key, lookup.index, &lookup.value));
        let added = new.iter().filter(|lookup| !old.contains(lookup));
        let added = added.map(|lookup| self.rows.enter(key, lookup.index, &lookup.value));
        let (active, is_newest, _, added, replaced) = try_join!(
            flat(self.rows.active_instance_key()),
            self.is_last_recorded(before),
            flat(try_join_all(gone)),
            flat(try_join_all(added)),
            flat(self.rows.replace_entity(before.version(), &row)),
        )?;
        if active.is_some_and(|active| row.sealed.key() != Some(active)) {
            return Err(Failure::Overtaken);
        }
        if !is_newest {
            return Err(Failure::Damaged { key, reason: "its state differs from the last recorded one" });
        }
        if !replaced {
            return Err(Failure::Damaged { key, reason: "it changed during the transaction" });
        }
        if added.contains(&false) {
            return Err(Refusal::NameTaken.into());
        }
        self.wrote(key, RowState::Revision(row.version));
        Ok(())
    }

    /// Removes an entity, which need not open. Returns `false` if it does not exist.
    ///
    /// # Errors
    /// The store failed.
    pub async fn remove<E: Entity>(&self, organization: OrganizationId, id: Uuid) -> Result<bool, Failure> {
        let key = EntityKey { organization, kind: E::KIND, id };
        let removed = self.rows.remove_entity(key).await?;
        if removed {
            self.wrote(key, RowState::Gone);
        }
        Ok(removed)
    }

    fn sealed<E: Entity>(&self, key: EntityKey, version: i64, value: &E) -> Result<EntityRow, Failure> {
        // Entities have string keys and no floats, so this cannot fail.
        let rewrapped = value.rewrapped(self.sealer()).map_err(|reason| Failure::Damaged { key, reason })?;
        let document = Zeroizing::new(serde_json::to_vec(rewrapped.as_ref().unwrap_or(value)).unwrap_or_default());
        let sealed = self.sealer().seal(&key, version, &document).map_err(Failure::Seal)?;
        Ok(EntityRow { key, version, due_at: value.due_at(), last_used_at: None, sealed })
    }

    fn wrote(&self, key: EntityKey, state: RowState) {
        if key.kind == Kind::Organization {
            self.state().organization = None;
        }
        self.state().written.extend(key.kind.recorded().map(|row| (row, state)));
    }

    /// Returns whether the version of an entity is the last one that the audit log records.
    async fn is_last_recorded<E: Entity>(&self, entity: &Opened<E>) -> Result<bool, Failure> {
        let key = entity.key();
        let Some(row) = key.kind.recorded() else { return Ok(true) };
        let Affected { subject, namespace, .. } = entity.subject(key.id);
        let query = RecordedStates { organization: key.organization, subject, row, namespace, limit: ENTRIES };
        let newest = self.rows.recorded(&query).await?;
        self.is_newest(query, &newest, entity.version()).await
    }

    /// Returns whether a version of a row is the last one that the audit log records, of which `newest` was read.
    ///
    /// # Errors
    /// The store failed.
    pub(crate) async fn is_newest(
        &self,
        query: RecordedStates,
        newest: &[RowState],
        version: i64,
    ) -> Result<bool, Failure> {
        let limit = query.limit;
        let is_newest = |states: &[RowState]| states.iter().map(|state| state.number()).max() == Some(version);
        let more = RecordedStates { limit: MORE_ENTRIES, ..query };
        Ok(is_newest(newest) || newest.len() == limit && is_newest(&self.rows.recorded(&more).await?))
    }

    /// Records the operation with the states of the rows that it wrote. An operation that records nothing is rolled back.
    ///
    /// # Errors
    /// The store failed.
    pub async fn record(
        &self,
        organization: Option<OrganizationId>,
        action: AuditAction,
        affected: Affected,
    ) -> Result<(), Failure> {
        self.record_as(Actor::from(self.principal), organization, action, affected).await
    }

    /// Writes rows and records the operation, in one exchange with the database.
    ///
    /// # Errors
    /// The store failed.
    pub async fn write_and_record(
        &self,
        rows: impl Future<Output = Result<(), RowsError>> + Send,
        organization: Option<OrganizationId>,
        action: AuditAction,
        affected: Affected,
    ) -> Result<(), Failure> {
        try_join!(flat(rows), self.record(organization, action, affected))?;
        Ok(())
    }

    /// Authorizes an integration from the rows of its document and organization. Returns the minute of its last use, or why it
    /// is not authorized.
    ///
    /// # Errors
    /// Those of [`Unit::find`].
    pub(crate) async fn authorize_integration(
        &self,
        principal: &IntegrationPrincipal,
        now: Timestamp,
    ) -> Result<Result<Option<Timestamp>, IntegrationRefusal>, Failure> {
        let (organization, id) = (principal.organization, *principal.integration.as_uuid());
        let row = flat(self.rows.entity(EntityKey { organization, kind: Kind::Integration, id }));
        let (row, organization_active) = try_join!(row, self.is_active(organization))?;
        let (sealed, last_used_at) = row.map(|row| (row.sealed, row.last_used_at)).unzip();
        let facts = IntegrationFacts { sealed, organization_active };
        Ok(check_integration(principal, &facts, now).map(|()| last_used_at.flatten()))
    }

    /// Records the operation with an entry that was made before. The caller emits its event.
    pub(crate) async fn record_entry(&self, entry: &SealedAuditRecord) -> Result<(), Failure> {
        self.state().commits = true;
        Ok(self.rows.append_entry(entry).await?)
    }

    /// Records an operation that no principal requested, like [`Unit::record`].
    ///
    /// # Errors
    /// The store failed.
    pub async fn record_by_system(
        &self,
        organization: Option<OrganizationId>,
        action: AuditAction,
        affected: Affected,
    ) -> Result<(), Failure> {
        self.record_as(Actor::System, organization, action, affected).await
    }

    /// Reports a row that does not open, if the operation succeeds.
    pub(crate) fn report_damage(&self, error: &SealError) {
        self.state().events.extend(error.event());
    }

    /// Reports an event, if the operation succeeds.
    pub(crate) fn report(&self, event: Event) {
        self.state().events.push(event);
    }

    /// Counts an action that is permitted `most` times an hour.
    ///
    /// # Errors
    /// [`Refusal::TooOften`] if the limit is reached.
    pub async fn count_hourly(&self, organization: OrganizationId, subject: &str, most: u32) -> Result<(), Failure> {
        let counted = self.rows.lock_hourly_count(organization, subject, self.now).await?;
        if let Some(seconds) = counted.refused_for(most, self.now) {
            return Err(Refusal::TooOften(seconds).into());
        }
        Ok(self.rows.set_hourly_count(organization, subject, counted.plus_one(self.now)).await?)
    }

    /// Commits without an entry, for changes that no principal requested, such as those of a rotation, or that change only the
    /// view of one user.
    pub fn commit_without_entry(&self) {
        self.state().commits = true;
    }

    /// Returns the entry of an action, which is not recorded.
    pub(crate) fn seal_entry(
        &self,
        actor: Actor,
        organization: Option<OrganizationId>,
        action: AuditAction,
        affected: Affected,
    ) -> SealedAuditRecord {
        self.environment.record(self.now, organization, actor, action, affected)
    }

    /// Records an operation of an actor that is not its principal, like [`Unit::record`].
    ///
    /// # Errors
    /// The store failed.
    pub(crate) async fn record_as(
        &self,
        actor: Actor,
        organization: Option<OrganizationId>,
        action: AuditAction,
        mut affected: Affected,
    ) -> Result<(), Failure> {
        self.state().commits = true;
        affected.rows.append(&mut self.state().written);
        let entry = self.seal_entry(actor, organization, action, affected);
        self.state().events.push(Event::recorded(&entry));
        Ok(self.rows.append_entry(&entry).await?)
    }

    pub(super) fn commits(&self) -> bool {
        self.state().commits
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).events
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts the error of rows, so that their futures can be joined with those of operations.
pub(crate) async fn flat<T>(rows: impl Future<Output = Result<T, RowsError>>) -> Result<T, Failure> {
    Ok(rows.await?)
}
