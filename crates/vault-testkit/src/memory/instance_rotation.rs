//! Moving rows between keys of the instance.

use super::inspection::page;
use super::rows::{MemoryRows, done};
use super::{MemoryStore, State, lock};
use async_trait::async_trait;
use vault_core::Refusal;
use vault_core::id::{AccountId, KeyId};
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{
    DestroyKey, InstanceKeyRotation, InstancePart, InstanceRow, InstanceRowKey, InstanceRows, KeyDestruction,
    LookupMove, ReplaceInstanceKey, Reply, StoreError, StoredRowKey, UnreadableRow,
};
use vault_core::receiver::EventDelivery;
use vault_core::sealed::RetiringInstanceKey;

#[async_trait]
impl InstanceKeyRotation for MemoryStore {
    async fn replace_instance_key(&self, command: ReplaceInstanceKey) -> Result<bool, StoreError> {
        self.decide(|state| {
            let ReplaceInstanceKey { current, next, keys, now, audit } = command;
            let as_read = |id: KeyId| keys.iter().any(|key| key.id == id);
            if state.instance.as_ref() != Some(&current) || !state.instance_keys.iter().all(|key| as_read(key.id)) {
                return false;
            }
            let (id, root_key, wrapped) = (current.instance_key, current.root_key, current.wrapped);
            state.retiring_instance_keys.push(RetiringInstanceKey { id, root_key, wrapped, retired_at: now });
            state.instance = Some(next);
            state.instance_keys = keys;
            state.audit.push(audit);
            true
        })
    }

    async fn count_under(&self, term: KeyringEntry) -> Result<i64, StoreError> {
        let entries = self.entries_under(term.id);
        self.decide(|state| state.count_under(term, entries))
    }

    async fn rekey_lookups(&self, rows: Vec<LookupMove>) -> Result<usize, StoreError> {
        self.decide(|state| rows.into_iter().filter(|row| state.move_look_up(row)).count())
    }

    async fn destroy_key(&self, command: DestroyKey) -> Result<KeyDestruction, StoreError> {
        let entries = self.entries_under(command.term.id);
        self.decide(|state| {
            let (id, purpose) = (command.term.id, command.term.purpose);
            let is_there = match purpose {
                KeyPurpose::Instance => state.retiring_instance_keys.iter().any(|row| row.id == id),
                _ => state.instance_keys.iter().any(|row| row.id == id && KeyPurpose::from(row.purpose) == purpose),
            };
            if !is_there {
                return Ok(KeyDestruction::NotRetiring);
            }
            if state.count_under(command.term, entries) > 0 {
                return Ok(KeyDestruction::InUse);
            }
            let instance = state.instance.as_mut().filter(|instance| instance.keyring == command.current);
            instance.ok_or(Refusal::Contended)?.keyring = command.keyring;
            state.retiring_instance_keys.retain(|row| row.id != id);
            state.instance_keys.retain(|row| row.id != id);
            state.audit.push(command.audit);
            Ok(KeyDestruction::Destroyed)
        })?
    }
}

impl InstanceRows for MemoryRows<'_> {
    fn instance_places(
        &self,
        part: InstancePart,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Reply<'_, Vec<StoredRowKey>> {
        done(page(self.state().instance_rows(part).iter().map(InstanceRow::place), after, limit))
    }

    fn instance_row(
        &self,
        part: InstancePart,
        place: InstanceRowKey,
    ) -> Reply<'_, Option<Result<InstanceRow, UnreadableRow>>> {
        done(self.state().instance_rows(part).into_iter().find(|row| row.place() == place).map(Ok))
    }

    fn reseal_row(&self, before: &InstanceRow, after: &InstanceRow) -> Reply<'_, bool> {
        let mut state = self.state();
        let is_unchanged = state.instance_rows(before.part()).contains(before);
        if is_unchanged {
            state.put_instance_row(after.clone());
        }
        done(is_unchanged)
    }
}

impl MemoryStore {
    /// Returns the rows of a part.
    pub fn instance_rows(&self, part: InstancePart) -> Vec<InstanceRow> {
        lock(&self.inner).state.instance_rows(part)
    }

    /// Returns the number of audit entries that a key signed.
    fn entries_under(&self, key: KeyId) -> usize {
        lock(&self.inner).trail.iter().filter(|entry| entry.key == key).count()
    }
}

impl State {
    /// Returns how many values still need a key that signed `entries` audit entries.
    fn count_under(&self, term: KeyringEntry, entries: usize) -> i64 {
        let KeyringEntry { purpose, id, since, .. } = term;
        let count = match purpose {
            KeyPurpose::Instance => {
                let rows = InstancePart::all().flat_map(|part| self.instance_rows(part));
                rows.filter(|row| row.keys().contains(&id)).count()
                    + self.instance_keys.iter().filter(|row| row.wrapped.key() == Some(id)).count()
                    + self.entities.values().filter(|row| row.sealed.key() == Some(id)).count()
            }
            KeyPurpose::Audit => {
                let delivery = self.delivery.as_ref().is_some_and(|row| row.position.key == id.to_string());
                entries + self.checkpoints.values().filter(|sealed| sealed.key == id).count() + usize::from(delivery)
            }
            KeyPurpose::Token => {
                let drained = since.plus_seconds(KeyringEntry::DRAINED_SECONDS);
                self.sessions.values().filter(|row| row.session.created_at <= drained).count()
            }
            KeyPurpose::Lookup => {
                let drained = since.plus_seconds(KeyringEntry::DRAINED_SECONDS);
                let is_old = |delivery: &&EventDelivery| delivery.position <= drained.as_millis() * 1_000;
                self.deliveries.values().filter(is_old).count()
                    + self.idempotency.values().filter(|row| row.created_at <= drained).count()
            }
        };
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// Returns `true` if anything was changed.
    fn move_look_up(&mut self, moved: &LookupMove) -> bool {
        let LookupMove { part, place: (_, id), address } = moved;
        let account = AccountId::from_uuid(*id);
        let row = match part {
            InstancePart::Accounts => self.addresses.get_mut(&account),
            _ => self.invited_addresses.get_mut(&account),
        };
        let moved = vec![*address];
        row.is_some_and(|row| std::mem::replace(row, moved.clone()) != moved)
    }

    pub(super) fn instance_rows(&self, part: InstancePart) -> Vec<InstanceRow> {
        let accounts = || self.accounts.values();
        let invitations = || self.invitations.values();
        match part {
            InstancePart::Organizations => {
                let all = self.organization_keys.iter();
                all.map(|(organization, keys)| InstanceRow::Organization {
                    organization: *organization,
                    keys: Box::new(keys.clone()),
                })
                .collect()
            }
            InstancePart::OrganizationKeys => {
                let all = self.organization_keys.values().flat_map(|keys| &keys.keys);
                all.map(|key| InstanceRow::OrganizationKey {
                    organization: key.organization,
                    key: key.id,
                    wrapped: key.wrapped.clone(),
                })
                .collect()
            }
            InstancePart::Accounts => accounts()
                .map(|row| InstanceRow::Account {
                    signed: Box::new(row.signed.clone()),
                    code: row.digest,
                    password: row.password.clone(),
                    seed: row.seed.clone(),
                })
                .collect(),
            InstancePart::PendingSeeds => accounts()
                .filter_map(|row| {
                    let (organization, account) = (row.signed.grant.organization, row.signed.grant.account);
                    let pending = row.pending.as_ref()?;
                    Some(InstanceRow::PendingSeed { organization, account, pending: pending.pending.clone() })
                })
                .collect(),
            InstancePart::Invitations => {
                invitations().map(|row| InstanceRow::Invitation(Box::new(row.stored.clone()))).collect()
            }
            InstancePart::Drafts => invitations()
                .filter_map(|row| {
                    let grant = &row.stored.invitation.grant;
                    let draft = row.draft.clone()?;
                    let (organization, account) = (grant.organization, grant.account);
                    Some(InstanceRow::Draft { organization, account, draft })
                })
                .collect(),
        }
    }

    fn put_instance_row(&mut self, row: InstanceRow) {
        match row {
            InstanceRow::Organization { organization, keys } => {
                if let Some(stored) = self.organization_keys.get_mut(&organization) {
                    stored.fingerprint_wrapped = keys.fingerprint_wrapped;
                }
            }
            InstanceRow::OrganizationKey { organization, key, wrapped } => {
                let keys = self.organization_keys.get_mut(&organization).into_iter().flat_map(|keys| &mut keys.keys);
                keys.filter(|row| row.id == key).for_each(|row| row.wrapped = wrapped.clone());
            }
            InstanceRow::Account { signed, code, password, seed } => {
                if let Some(row) = self.accounts.get_mut(&signed.grant.account) {
                    (row.digest, row.password, row.seed) = (code, password, seed);
                }
            }
            InstanceRow::PendingSeed { account, pending, .. } => {
                let stored = self.accounts.get_mut(&account).and_then(|row| row.pending.as_mut());
                stored.into_iter().for_each(|stored| stored.pending = pending.clone());
            }
            InstanceRow::Invitation(stored) => {
                if let Some(row) = self.invitations.get_mut(&stored.invitation.grant.account) {
                    row.stored.digest = stored.digest;
                }
            }
            InstanceRow::Draft { account, draft, .. } => {
                if let Some(stored) = self.invitations.get_mut(&account).and_then(|row| row.draft.as_mut()) {
                    *stored = draft;
                }
            }
        }
    }
}
