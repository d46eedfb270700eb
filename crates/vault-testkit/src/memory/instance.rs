//! The row of the instance.

use super::rows::{MemoryRows, done};
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{CreateInstance, InstanceRows, KeyRepository, Reply, StoreError};
use vault_core::receiver::EventDelivery;
use vault_core::sealed::InstanceRecord;

#[async_trait]
impl KeyRepository for MemoryStore {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        self.decide(|state| state.instance.clone())
    }

    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        self.decide(|state| {
            if state.instance.is_some() {
                return false;
            }
            state.instance = Some(command.instance);
            state.audit.push(command.audit);
            true
        })
    }
}

impl InstanceRows for MemoryRows<'_> {
    fn lock_instance(&self) -> Reply<'_, Option<InstanceRecord>> {
        done(self.state().instance.clone())
    }

    fn set_instance(&self, instance: &InstanceRecord) -> Reply<'_, ()> {
        self.state().instance = Some(instance.clone());
        done(())
    }

    fn requires(&self, key: KeyringEntry) -> Reply<'_, bool> {
        let entries = self.trail.iter().filter(|entry| entry.key == key.id).count();
        done(self.state().count_under(key, entries) > 0)
    }

    fn count_under(&self, key: KeyringEntry) -> Reply<'_, i64> {
        let entries = self.trail.iter().filter(|entry| entry.key == key.id).count();
        done(self.state().count_under(key, entries))
    }
}

impl State {
    /// Returns how many values still need a key that signed `entries` audit entries.
    fn count_under(&self, key: KeyringEntry, entries: usize) -> i64 {
        let KeyringEntry { purpose, id, since, .. } = key;
        let count = match purpose {
            KeyPurpose::Instance => self.entities.values().filter(|row| row.sealed.key() == Some(id)).count(),
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
}
