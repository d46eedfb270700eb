//! Wrapped keys.

use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::Refusal;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{CreateInstance, KeyRepository, ReplaceOrganizationKey, ReserveKeyUses, StoreError};
use vault_core::sealed::{Blob, InstanceRecord, KeyState, OrganizationKeyRecord, OrganizationKeys, ReboundKeys};

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

    async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError> {
        self.decide(|state| state.organization_keys.get(&organization).cloned())
    }

    async fn reserve_key_uses(&self, command: ReserveKeyUses) -> Result<bool, StoreError> {
        self.decide(|state| {
            let Some(key) = state.active_key_record(command.organization, command.key) else { return false };
            let as_read = key.uses == command.from;
            if as_read {
                key.uses += command.block;
            }
            as_read
        })
    }

    async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError> {
        self.decide(|state| {
            let wrapped = [&command.next.wrapped, &command.fingerprint.after];
            state.require_active(wrapped.into_iter().filter_map(Blob::key))?;
            let organization = command.next.organization;
            if !state.binds(organization, &command.fingerprint) {
                return Ok(false);
            }
            let Some(current) = state.active_key_record(organization, command.current) else { return Ok(false) };
            current.state = KeyState::Retiring;
            if let Some(keys) = state.organization_keys.get_mut(&organization) {
                keys.keys.push(command.next);
                keys.fingerprint_wrapped = command.fingerprint.after;
            }
            state.audit.push(command.audit);
            Ok(true)
        })?
    }
}

impl State {
    /// Checks that new values are sealed and signed under the active instance key, if the instance exists.
    pub(super) fn require_active(&self, keys: impl IntoIterator<Item = KeyId>) -> Result<(), Refusal> {
        let Some(instance) = &self.instance else { return Ok(()) };
        if keys.into_iter().all(|key| key == instance.instance_key) { Ok(()) } else { Err(Refusal::Contended) }
    }

    /// Whether an organization's fingerprint key is still wrapped as before.
    pub(super) fn binds(&self, organization: OrganizationId, wrap: &ReboundKeys) -> bool {
        self.organization_keys.get(&organization).is_some_and(|keys| keys.fingerprint_wrapped == wrap.before)
    }

    fn active_key_record(&mut self, organization: OrganizationId, id: KeyId) -> Option<&mut OrganizationKeyRecord> {
        let keys = &mut self.organization_keys.get_mut(&organization)?.keys;
        keys.iter_mut().find(|key| key.id == id && key.state == KeyState::Active)
    }
}
