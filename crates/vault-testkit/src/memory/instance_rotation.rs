//! Moving rows between keys of the instance.

use super::inspection::page;
use super::rows::{MemoryRows, done};
use super::{MemoryStore, State, lock};
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{InstancePart, InstanceRow, InstanceRowKey, InstanceRows, Reply, StoredRowKey, UnreadableRow};
use vault_core::receiver::EventDelivery;
use vault_core::sealed::InstanceRecord;

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

    fn lock_instance(&self) -> Reply<'_, Option<InstanceRecord>> {
        done(self.state().instance.clone())
    }

    fn set_instance(&self, instance: &InstanceRecord) -> Reply<'_, ()> {
        self.state().instance = Some(instance.clone());
        done(())
    }

    fn requires(&self, term: KeyringEntry) -> Reply<'_, bool> {
        let entries = self.trail.iter().filter(|entry| entry.key == term.id).count();
        done(self.state().count_under(term, entries) > 0)
    }

    fn count_under(&self, term: KeyringEntry) -> Reply<'_, i64> {
        let entries = self.trail.iter().filter(|entry| entry.key == term.id).count();
        done(self.state().count_under(term, entries))
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
}

impl State {
    /// Returns how many values still need a key that signed `entries` audit entries.
    fn count_under(&self, term: KeyringEntry, entries: usize) -> i64 {
        let KeyringEntry { purpose, id, since, .. } = term;
        let count = match purpose {
            KeyPurpose::Instance => {
                let rows = InstancePart::all().flat_map(|part| self.instance_rows(part));
                rows.filter(|row| row.keys().contains(&id)).count()
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

    pub(super) fn instance_rows(&self, part: InstancePart) -> Vec<InstanceRow> {
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
        }
    }
}
