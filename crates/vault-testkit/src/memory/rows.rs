//! The rows of operations.

use super::row::{CheckRow, CredentialRow};
use super::{Defect, MemoryStore, State};
use crate::clock::lock;
use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::{Either, ready};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, MutexGuard};
use uuid::Uuid;
use vault_core::audit::{AuditAction, AuditEntry, RowState, SealedAuditRecord};
use vault_core::credential::{
    CHECK_AGAIN_SECONDS, CheckRound, CredentialQuery, CredentialUpdate, CredentialUse, DueCheck, EarlierRequest,
    Holder, LastCheck, ListUses, ListedRows, NewCredentialRow, VersionKey,
};
use vault_core::digest::Digest;
use vault_core::entity::{EntityKey, Index, Kind};
use vault_core::hourly::HourlyLimit;
use vault_core::id::{AuditId, CredentialId, IntegrationId, KeyId, OrganizationId};
use vault_core::integration::{CountedPeriod, HourlyActions, IntegrationActions};
use vault_core::namespace::Namespace;
use vault_core::operation::{End, Work};
use vault_core::organization::OrganizationState;
use vault_core::port::{
    AuditOrder, AuditRange, AuditRows, AuthorityRows, CounterRows, CredentialRows, EntityRow, EntityRows, Idempotency,
    LookupRow, NamePosition, NamespaceRows, OrganizationRows, RecordedStates, Reply, RowStore, Rows, SealedCredential,
    StoreError, StoredCredential, StoredVersions,
};
use vault_core::principal::{Scope, SessionPrincipal};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

const HOUR_MILLIS: i64 = 3_600_000;

/// The rows of one transaction.
pub(super) struct MemoryRows<'a> {
    state: Mutex<&'a mut State>,
    defect: Option<Defect>,
    pub(super) trail: &'a [SealedAuditRecord],
}

pub(super) fn done<T>(value: T) -> Reply<'static, T> {
    Either::Left(ready(Ok(value)))
}

impl<'a> MemoryRows<'a> {
    pub(super) fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, &'a mut State> {
        lock(&self.state)
    }

    /// Returns the sealed entries of an organization's integrations within a period.
    fn entries_of_integrations(
        &self,
        organization: OrganizationId,
        period: CountedPeriod,
    ) -> Vec<(IntegrationId, AuditAction, AuditEntry)> {
        let (state, from) = (self.state(), AuditId::first_at(period.since));
        let counted = self.trail.iter().filter(|sealed| {
            let record = &sealed.record;
            record.organization == Some(organization)
                && record.id >= from
                && state.checkpointed.contains_key(&record.id)
                && period.integration.is_none_or(|wanted| record.actor.integration() == Some(wanted))
        });
        let of_integrations = counted
            .filter_map(|sealed| Some((sealed.record.actor.integration()?, sealed.record.action, sealed.to_entry())));
        of_integrations.collect()
    }
}

#[async_trait]
impl RowStore for MemoryStore {
    async fn submit(&self, mut work: Box<dyn Work>) -> Result<Box<dyn Work>, StoreError> {
        self.decide_with(|state, trail| {
            let before = state.clone();
            let rows = MemoryRows { state: Mutex::new(state), defect: self.defect, trail };
            let ran = work.run(&rows).now_or_never();
            if !matches!(ran, Some(Ok(End::Commit))) {
                *state = before;
            }
            match ran {
                Some(Ok(_)) => Ok(()),
                Some(Err(_)) | None => Err(StoreError::Fault("the operation waited".into())),
            }
        })??;
        Ok(work)
    }
}

impl EntityRows for MemoryRows<'_> {
    fn entity(&self, key: EntityKey) -> Reply<'_, Option<EntityRow>> {
        done(self.state().entities.get(&key.order()).cloned())
    }

    fn insert_entity(&self, row: &EntityRow) -> Reply<'_, bool> {
        let mut state = self.state();
        let is_new = !state.entities.contains_key(&row.key.order());
        if is_new {
            state.entities.insert(row.key.order(), row.clone());
        }
        done(is_new)
    }

    fn replace_entity(&self, before: i64, row: &EntityRow) -> Reply<'_, bool> {
        let mut state = self.state();
        let found = state.entities.get_mut(&row.key.order()).filter(|found| found.version == before);
        done(found.map(|found| *found = EntityRow { last_used_at: found.last_used_at, ..row.clone() }).is_some())
    }

    fn remove_entity(&self, key: EntityKey) -> Reply<'_, bool> {
        done(self.state().remove_entity(key))
    }

    fn set_last_use(&self, key: EntityKey, last_used_at: Option<Timestamp>) -> Reply<'_, ()> {
        if let Some(row) = self.state().entities.get_mut(&key.order()) {
            row.last_used_at = last_used_at;
        }
        done(())
    }

    fn count_entities(&self, organization: OrganizationId, kind: Kind) -> Reply<'_, i64> {
        done(i64::try_from(self.state().entities_of(organization, kind).count()).unwrap_or(i64::MAX))
    }

    fn lock_entities(&self, organization: OrganizationId, kind: Kind) -> Reply<'_, Vec<EntityRow>> {
        done(self.state().entities_of(organization, kind).cloned().collect())
    }

    fn due_entities(
        &self,
        organization: OrganizationId,
        kind: Kind,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<EntityRow>> {
        let state = self.state();
        let is_due = |row: &&EntityRow| row.due_at.is_some_and(|at| at > after && at <= until);
        let mut due: Vec<_> = state.entities_of(organization, kind).filter(is_due).cloned().collect();
        due.sort_by_key(|row| (row.due_at, row.key.id));
        due.truncate(limit);
        done(due)
    }

    fn reseal_entity(&self, row: &EntityRow, sealed: &Blob) -> Reply<'_, bool> {
        let mut state = self.state();
        let found = state.entities.get_mut(&row.key.order()).filter(|found| {
            (found.version, &found.sealed) == (row.version, &row.sealed) // whenever it was used
        });
        done(found.map(|found| found.sealed = sealed.clone()).is_some())
    }

    fn entities_after(&self, after: Option<EntityKey>, limit: usize) -> Reply<'_, Vec<EntityRow>> {
        let after = after.map_or(Unbounded, |after| Excluded(after.order()));
        done(self.state().entities.range((after, Unbounded)).take(limit).map(|(_, row)| row.clone()).collect())
    }

    fn newest_entities(
        &self,
        kind: Kind,
        of: Option<OrganizationId>,
        after: Option<(OrganizationId, Uuid)>,
        limit: usize,
    ) -> Reply<'_, Vec<EntityRow>> {
        let order = |(organization, id): (OrganizationId, Uuid)| (organization, Reverse(id));
        let place = |row: &EntityRow| order((row.key.organization, row.key.id));
        let state = self.state();
        let rows = state.entities.values().filter(|row| {
            row.key.kind == kind
                && of.is_none_or(|of| row.key.organization == of)
                && after.is_none_or(|after| place(row) > order(after))
        });
        let mut rows: Vec<EntityRow> = rows.cloned().collect();
        rows.sort_by_key(place);
        rows.truncate(limit);
        done(rows)
    }

    fn listed_entities(
        &self,
        index: Index,
        of: Option<OrganizationId>,
        after: Option<NamePosition>,
        limit: usize,
    ) -> Reply<'_, Vec<(String, EntityRow)>> {
        let state = self.state();
        let leading = state.lookups.iter().filter(|((owner, name, own), _)| {
            *name == index.as_str()
                && of.is_none_or(|of| of == *owner)
                && after.as_ref().is_none_or(|after| (*owner, own.as_str()) > (after.organization, after.name.as_str()))
        });
        let rows = leading.filter_map(|((owner, _, value), id)| {
            let key = EntityKey { organization: *owner, kind: index.kind(), id: *id };
            Some((value.clone(), state.entities.get(&key.order())?.clone()))
        });
        done(rows.take(limit).collect())
    }

    fn lookups_after(&self, after: Option<LookupRow>, limit: usize) -> Reply<'_, Vec<LookupRow>> {
        let state = self.state();
        let rows = state.lookups.iter().map(|((organization, index, value), id)| LookupRow {
            organization: *organization,
            index: (*index).to_owned(),
            value: value.clone(),
            id: *id,
        });
        done(rows.filter(|row| after.as_ref().is_none_or(|after| row > after)).take(limit).collect())
    }

    fn global_lookups_after(&self, after: Option<LookupRow>, limit: usize) -> Reply<'_, Vec<LookupRow>> {
        let state = self.state();
        let rows = state.global_lookups.iter().map(|((index, value), (organization, id))| LookupRow {
            organization: *organization,
            index: (*index).to_owned(),
            value: value.clone(),
            id: *id,
        });
        let is_later = |row: &LookupRow| {
            after.as_ref().is_none_or(|after| (&row.index, &row.value) > (&after.index, &after.value))
        };
        done(rows.filter(is_later).take(limit).collect())
    }

    fn find_anywhere(&self, index: Index, value: &str) -> Reply<'_, Option<(OrganizationId, Uuid)>> {
        done(self.state().global_lookups.get(&(index.as_str(), value.to_owned())).copied())
    }

    fn find(&self, organization: OrganizationId, index: Index, value: &str) -> Reply<'_, Option<Uuid>> {
        if index == Index::FrozenNamespace && self.has(Defect::HidesFreezes) {
            return done(None);
        }
        done(self.state().lookups.get(&(organization, index.as_str(), value.to_owned())).copied())
    }

    fn enter(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool> {
        fn new<K: Ord, V>(leads: &mut BTreeMap<K, V>, place: K, to: V) -> bool {
            match leads.entry(place) {
                Entry::Vacant(vacant) => {
                    vacant.insert(to);
                    true
                }
                Entry::Occupied(_) => false,
            }
        }
        let (mut state, value) = (self.state(), value.to_owned());
        done(match index.is_global() {
            true => new(&mut state.global_lookups, (index.as_str(), value), (key.organization, key.id)),
            false => new(&mut state.lookups, (key.organization, index.as_str(), value), key.id),
        })
    }

    fn leave(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool> {
        fn gone<K: Ord, V: PartialEq>(leads: &mut BTreeMap<K, V>, place: &K, to: &V) -> bool {
            leads.get(place) == Some(to) && leads.remove(place).is_some()
        }
        let (mut state, value) = (self.state(), value.to_owned());
        done(match index.is_global() {
            true => gone(&mut state.global_lookups, &(index.as_str(), value), &(key.organization, key.id)),
            false => gone(&mut state.lookups, &(key.organization, index.as_str(), value), &key.id),
        })
    }
}

impl AuthorityRows for MemoryRows<'_> {
    fn session_expiry(&self, session: &SessionPrincipal) -> Reply<'_, Option<Timestamp>> {
        let state = self.state();
        let row = state.sessions.get(&session.session);
        let row = row.filter(|row| (row.organization, row.account) == (session.organization, session.account));
        done(row.map(|row| row.session.expires_at))
    }

    fn organization_state(&self, organization: OrganizationId) -> Reply<'_, Option<OrganizationState>> {
        let state = self.state();
        let leads = |wanted: &OrganizationState| {
            let value = wanted.as_str().to_owned();
            state.lookups.contains_key(&(organization, Index::OrganizationState.as_str(), value))
        };
        done([OrganizationState::Active, OrganizationState::Disabled].into_iter().find(leads))
    }
}

impl OrganizationRows for MemoryRows<'_> {
    fn insert_organization(&self, organization: OrganizationId) -> Reply<'_, ()> {
        self.state().organizations.insert(organization, 0);
        done(())
    }

    fn key_uses(&self, organization: OrganizationId) -> Reply<'_, i64> {
        done(self.state().organizations.get(&organization).copied().unwrap_or_default())
    }

    fn add_key_uses(&self, organization: OrganizationId, uses: i64) -> Reply<'_, ()> {
        self.state().organizations.entry(organization).and_modify(|before| *before += uses);
        done(())
    }

    fn reset_key_uses(&self, organization: OrganizationId) -> Reply<'_, ()> {
        self.state().organizations.entry(organization).and_modify(|before| *before = 0);
        done(())
    }

    fn end_sessions(&self, organization: OrganizationId) -> Reply<'_, ()> {
        self.state().sessions.retain(|_, session| session.organization != organization);
        done(())
    }

    fn remove_organization(&self, id: OrganizationId) -> Reply<'_, ()> {
        let mut state = self.state();
        state.organizations.remove(&id);
        state.accounts.retain(|(organization, _), _| *organization != id);
        state.hourly.retain(|(organization, _), _| *organization != id);
        state.uses.retain(|(organization, _), _| *organization != id);
        state.checks.retain(|(organization, _), _| *organization != id);
        state.sessions.retain(|_, session| session.organization != id);
        state.credentials.retain(|(organization, _), _| *organization != id);
        state.receiver_status.retain(|key, _| key.owner != Some(id));
        state.deliveries.retain(|(key, _), _| key.owner != Some(id));
        state.entities.retain(|(organization, ..), _| *organization != id);
        state.lookups.retain(|(organization, ..), _| *organization != id);
        state.global_lookups.retain(|_, (organization, _)| *organization != id);
        state.activations.retain(|_, activation| activation.organization != id);
        state.idempotency.retain(|(organization, ..), _| *organization != id);
        done(())
    }
}

impl CounterRows for MemoryRows<'_> {
    fn lock_hourly_count(
        &self,
        organization: OrganizationId,
        subject: &str,
        _now: Timestamp,
    ) -> Reply<'_, HourlyLimit> {
        done(self.state().hourly.get(&(organization, subject.to_owned())).copied().unwrap_or_default())
    }

    fn set_hourly_count(&self, organization: OrganizationId, subject: &str, counted: HourlyLimit) -> Reply<'_, ()> {
        self.state().hourly.insert((organization, subject.to_owned()), counted);
        done(())
    }
}

impl NamespaceRows for MemoryRows<'_> {
    fn count_in(&self, organization: OrganizationId, namespace: &Namespace, most: usize) -> Reply<'_, i64> {
        let state = self.state();
        let within = state.credentials_of(organization).filter(|row| row.stored.namespace == *namespace);
        done(i64::try_from(within.take(most).count()).unwrap_or(i64::MAX))
    }

    fn namespace_after(&self, organization: OrganizationId, after: &str) -> Reply<'_, Option<Namespace>> {
        let state = self.state();
        let used = state.credentials_of(organization).map(|row| &row.stored.namespace);
        done(used.filter(|namespace| namespace.as_str() > after).min().cloned())
    }
}

impl CredentialRows for MemoryRows<'_> {
    fn credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<StoredCredential>> {
        done(self.state().credentials.get(&(organization, id)).map(|row| row.stored.clone()))
    }

    fn credential_versions(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<StoredVersions>> {
        done(self.state().credentials.get(&(organization, id)).map(CredentialRow::versions))
    }

    fn listed_credentials(&self, query: &CredentialQuery, now: Timestamp) -> Reply<'_, ListedRows> {
        let by_expiry = query.filter.expires_before.is_some();
        let state = self.state();
        let listed = state.credentials_of(query.organization).rev();
        let listed = listed.filter(|row| query.matches(&row.stored, &row.labels, now)).map(|row| row.stored.clone());
        let mut rows: Vec<_> = listed
            .filter(|row| {
                query.after.is_none_or(|after| match by_expiry {
                    true => (row.expires_at, row.id) > (after.expires_at, after.id),
                    false => row.id < after.id,
                })
            })
            .collect();
        if by_expiry {
            rows.sort_by_key(|row| (row.expires_at, row.id));
        }
        rows.truncate(query.limit);
        done(ListedRows { rows, searched_to: None })
    }

    fn credential_count(&self, organization: OrganizationId) -> Reply<'_, i64> {
        let count = self.state().credentials_of(organization).count();
        let count = if self.has(Defect::CountsLess) { count.saturating_sub(1) } else { count };
        done(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn insert_credential<'t>(&'t self, new: &'t NewCredentialRow) -> Reply<'t, ()> {
        self.state().insert_credential(new);
        done(())
    }

    fn change_credential<'t>(&'t self, update: &'t CredentialUpdate<'t>) -> Reply<'t, ()> {
        let mut change = update.clone();
        if self.has(Defect::KeepsVersions) {
            change.effects.destroyed.clear();
        }
        if self.has(Defect::KeepsLabels) {
            change.labels = None;
        }
        self.state().change_credential(&change);
        done(())
    }

    fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Reply<'_, i64> {
        let sealed = self.state().credentials_of(organization).filter(|row| row.key == key).count();
        done(i64::try_from(sealed).unwrap_or(i64::MAX))
    }

    fn sealed_except(
        &self,
        organization: OrganizationId,
        key: KeyId,
        after: Option<CredentialId>,
        limit: usize,
    ) -> Reply<'_, Vec<SealedCredential>> {
        let state = self.state();
        let others = state.credentials_of(organization).filter(|row| row.key != key);
        let others = others.filter(|row| after.is_none_or(|after| row.stored.id > after)).take(limit);
        let sealed = others.map(|row| SealedCredential {
            id: row.stored.id,
            key: row.key,
            revision: row.stored.revision,
            card: row.stored.card.clone(),
            data: row.data.iter().map(|(number, row)| (*number, row.data.clone())).collect(),
        });
        done(sealed.collect())
    }

    fn reseal_credential<'t>(
        &'t self,
        organization: OrganizationId,
        credential: &'t SealedCredential,
    ) -> Reply<'t, ()> {
        if let Some(row) = self.state().credentials.get_mut(&(organization, credential.id)) {
            (row.key, row.stored.card) = (credential.key, credential.card.clone());
            for (number, data) in &credential.data {
                row.data.entry(*number).and_modify(|row| row.data = data.clone());
            }
        }
        done(())
    }

    fn labels(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Vec<Digest>> {
        let state = self.state();
        done(state.credentials.get(&(organization, id)).map(|row| row.labels.clone()).unwrap_or_default())
    }

    fn version_check(
        &self,
        organization: OrganizationId,
        id: CredentialId,
        version: i64,
    ) -> Reply<'_, Option<LastCheck>> {
        let state = self.state();
        let row = state.credentials.get(&(organization, id)).and_then(|row| row.data.get(&version));
        done(row.and_then(|row| row.check))
    }

    fn set_labels(&self, organization: OrganizationId, id: CredentialId, labels: &[Digest]) -> Reply<'_, ()> {
        if let Some(row) = self.state().credentials.get_mut(&(organization, id)) {
            row.labels = labels.to_vec();
        }
        done(())
    }

    fn remove_credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, ()> {
        let (mut state, place) = (self.state(), (organization, id));
        state.credentials.remove(&place);
        state.uses.remove(&place);
        state.checks.remove(&place);
        done(())
    }

    fn earlier_request(
        &self,
        organization: OrganizationId,
        idempotency: &Idempotency,
    ) -> Reply<'_, Option<EarlierRequest>> {
        let earlier = self.state().earlier_request(organization, idempotency);
        done(earlier.filter(|_| !self.has(Defect::ForgetsRequests)))
    }

    fn uses(&self, query: &ListUses) -> Reply<'_, Vec<CredentialUse>> {
        let position = |one: &CredentialUse| (one.at, one.activation);
        let is_later =
            |one: &&CredentialUse| query.after.is_none_or(|after| position(one) < (after.at, after.activation));
        let state = self.state();
        let uses = state.uses.get(&(query.organization, query.id)).into_iter().flatten();
        let mut uses: Vec<_> = uses.filter(is_later).cloned().collect();
        uses.sort_by_key(|one| std::cmp::Reverse(position(one)));
        uses.truncate(query.limit);
        done(uses)
    }

    fn checker_seen_at(&self) -> Reply<'_, Option<Timestamp>> {
        done(self.state().checker_seen_at)
    }

    fn request_check(
        &self,
        organization: OrganizationId,
        id: CredentialId,
        version: i64,
        requested_at: Timestamp,
    ) -> Reply<'_, ()> {
        self.state().checks.insert((organization, id), CheckRow { version, requested_at, taken_at: None });
        done(())
    }

    fn remove_check_request(&self, key: VersionKey) -> Reply<'_, ()> {
        let (mut state, place) = (self.state(), (key.organization, key.id));
        if state.checks.get(&place).is_some_and(|waits| waits.version == key.version) {
            state.checks.remove(&place);
        }
        done(())
    }

    fn set_check(&self, key: VersionKey, check: LastCheck) -> Reply<'_, bool> {
        let mut state = self.state();
        let Some(row) = state.credentials.get_mut(&(key.organization, key.id)) else { return done(false) };
        if row.stored.version == key.version {
            row.stored.check = Some(check);
        }
        done(row.data.get_mut(&key.version).map(|version| version.check = Some(check)).is_some())
    }

    fn lock_check_round(&self, now: Timestamp) -> Reply<'_, (Timestamp, CheckRound)> {
        let mut state = self.state();
        done((*state.checker_seen_at.get_or_insert(now), state.round))
    }

    fn set_check_round(&self, now: Timestamp, round: CheckRound) -> Reply<'_, ()> {
        let mut state = self.state();
        (state.checker_seen_at, state.round) = (Some(now), round);
        done(())
    }

    fn claim_requested_checks(&self, now: Timestamp, most: usize) -> Reply<'_, Vec<VersionKey>> {
        let mut state = self.state();
        let waits = |row: &CheckRow| row.taken_at.is_none_or(|taken| taken.plus_seconds(CHECK_AGAIN_SECONDS) <= now);
        let mut requested: Vec<_> = state.checks.iter().filter(|(_, row)| waits(row)).collect();
        requested.retain(|((organization, _), _)| state.organization_is_active(*organization));
        requested.sort_by_key(|(place, row)| (row.requested_at, **place));
        let version = |((organization, id), row): (&(_, _), &CheckRow)| VersionKey {
            organization: *organization,
            id: *id,
            version: row.version,
        };
        let claimed: Vec<_> = requested.into_iter().take(most).map(version).collect();
        for key in &claimed {
            state.checks.get_mut(&(key.organization, key.id)).expect("it was found").taken_at = Some(now);
        }
        done(claimed)
    }

    fn credentials_after(
        &self,
        after: Option<(OrganizationId, CredentialId)>,
        most: usize,
    ) -> Reply<'_, Vec<VersionKey>> {
        let (state, after) = (self.state(), after.map_or(Unbounded, Excluded));
        let following = state.credentials.range((after, Unbounded));
        let following = following.filter(|((organization, _), _)| state.organization_is_active(*organization));
        let version = |((organization, id), row): (&(_, _), &CredentialRow)| VersionKey {
            organization: *organization,
            id: *id,
            version: row.stored.version,
        };
        done(following.take(most).map(version).collect())
    }

    fn due_check(&self, key: VersionKey) -> Reply<'_, Option<DueCheck>> {
        done(self.state().due_check(key.organization, key.id, key.version))
    }

    fn set_activated(
        &self,
        organization: OrganizationId,
        credentials: &[CredentialId],
        minute: Timestamp,
    ) -> Reply<'_, ()> {
        let mut state = self.state();
        for id in credentials {
            if let Some(row) = state.credentials.get_mut(&(organization, *id)) {
                row.stored.last_activated_at = row.stored.last_activated_at.max(Some(minute));
            }
        }
        done(())
    }

    fn current_version(&self, organization: OrganizationId, credential: CredentialId) -> Reply<'_, Option<i64>> {
        done(self.state().credentials.get(&(organization, credential)).map(|row| row.stored.version))
    }

    fn holders(&self, organization: OrganizationId, id: CredentialId, now: Timestamp) -> Reply<'_, Vec<Holder>> {
        let mut holders = BTreeMap::<_, Holder>::new();
        for one in self.state().uses.get(&(organization, id)).into_iter().flatten() {
            let (integration, version, at) = (one.integration, one.version, one.at);
            let new = Holder { integration, version, activations: 0, last_activated_at: at, until: None };
            let holder = holders.entry((integration, version)).or_insert(new);
            holder.activations += 1;
            holder.last_activated_at = holder.last_activated_at.max(at);
            let until = Some(one.expires_at).filter(|until| one.ended_at.is_none() && *until > now);
            holder.until = holder.until.max(until);
        }
        done(holders.into_values().collect())
    }
}

impl AuditRows for MemoryRows<'_> {
    fn append_entry(&self, entry: &SealedAuditRecord) -> Reply<'_, ()> {
        self.state().audit.push(entry.clone());
        done(())
    }

    fn entries(&self, range: AuditRange, after: Option<String>, limit: usize) -> Reply<'_, Vec<AuditEntry>> {
        let AuditRange { scope, from, until, order } = range;
        let mut entries = super::audit::entries(&self.state(), self.trail);
        if let Scope::One(organization) = scope {
            let own = Some(organization.to_string());
            entries.retain(|entry| entry.organization == own && entry.checkpoint.is_some());
        }
        let (from, until) = (from.map(|id| id.to_string()), until.map(|id| id.to_string()));
        entries.retain(|entry| from.as_ref().is_none_or(|from| entry.id >= *from));
        entries.retain(|entry| until.as_ref().is_none_or(|until| entry.id < *until));
        if order == AuditOrder::NewestFirst {
            entries.reverse();
        }
        let is_next = |entry: &AuditEntry| match (&after, order) {
            (None, _) => true,
            (Some(after), AuditOrder::OldestFirst) => entry.id > *after,
            (Some(after), AuditOrder::NewestFirst) => entry.id < *after,
        };
        done(entries.into_iter().filter(is_next).take(limit).collect())
    }

    fn entries_with(&self, ids: &[AuditId]) -> Reply<'_, Vec<AuditEntry>> {
        let mut entries = super::audit::entries(&self.state(), self.trail);
        entries.retain(|entry| entry.id.parse().is_ok_and(|id| ids.contains(&id)));
        done(entries)
    }

    fn recorded(&self, query: &RecordedStates) -> Reply<'_, Vec<RowState>> {
        done(self.entries_about(query).iter().filter_map(|entry| entry.left(query.row)).collect())
    }

    fn count_actions(&self, organization: OrganizationId, period: CountedPeriod) -> Reply<'_, Vec<IntegrationActions>> {
        let mut counts = BTreeMap::<_, IntegrationActions>::new();
        for (integration, action, entry) in self.entries_of_integrations(organization, period) {
            let day = entry.at.millis_since(period.since) / (24 * HOUR_MILLIS);
            let namespace = entry.namespace.as_deref().and_then(|text| Namespace::parse(text, "").ok());
            let key = (integration, entry.namespace, entry.action, day);
            let (first_at, last_at) = (entry.at, entry.at);
            let new = IntegrationActions { integration, namespace, action, day, count: 0, first_at, last_at };
            let counted = counts.entry(key).or_insert(new);
            counted.count += entry.count;
            counted.first_at = counted.first_at.min(entry.at);
            counted.last_at = counted.last_at.max(entry.at);
        }
        done(counts.into_values().collect())
    }

    fn count_hours(&self, organization: OrganizationId, period: CountedPeriod) -> Reply<'_, Vec<HourlyActions>> {
        let mut counts = BTreeMap::<_, HourlyActions>::new();
        for (_, action, entry) in self.entries_of_integrations(organization, period) {
            let hour = entry.at.millis_since(period.since) / HOUR_MILLIS;
            let new = HourlyActions { action, hour, count: 0 };
            counts.entry((entry.action, hour)).or_insert(new).count += entry.count;
        }
        done(counts.into_values().collect())
    }
}

impl Rows for MemoryRows<'_> {
    /// Does nothing: a transaction has the whole store.
    fn lock(&self, _organization: OrganizationId) -> Reply<'_, ()> {
        done(())
    }

    fn active_instance_key(&self) -> Reply<'_, Option<KeyId>> {
        done(self.state().instance.as_ref().map(|instance| instance.instance_key))
    }
}

impl State {
    pub(super) fn entities_of(&self, organization: OrganizationId, kind: Kind) -> impl Iterator<Item = &EntityRow> {
        let is_its = move |row: &&EntityRow| (row.key.organization, row.key.kind) == (organization, kind);
        self.entities.values().filter(is_its)
    }
}
