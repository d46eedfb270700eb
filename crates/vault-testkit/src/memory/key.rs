//! Wrapped keys.

use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::Refusal;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{
    CreateInstance, KeyRepository, ReplaceOrganizationKey, ReplaceRootKey, ReserveKeyUses, StoreError,
};
use vault_core::sealed::{
    Blob, InstanceKeyRecord, InstanceRecord, KeyState, OrganizationKeyRecord, OrganizationKeys, ReboundKeys,
    RetiringInstanceKey,
};

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
            state.instance_keys = command.keys;
            state.audit.push(command.audit);
            true
        })
    }

    async fn replace_root_key(&self, command: ReplaceRootKey) -> Result<bool, StoreError> {
        self.decide(|state| {
            let read = &command.current;
            if !state.retiring_instance_keys.is_empty() {
                return false;
            }
            let Some(instance) = state.instance.as_mut().filter(|instance| {
                (instance.id, instance.root_key, instance.instance_key) == (read.id, read.root_key, read.instance_key)
                    && instance.wrapped == read.wrapped
            }) else {
                return false;
            };
            (instance.root_key, instance.wrapped) = (command.root_key, command.wrapped);
            state.audit.push(command.audit);
            true
        })
    }

    async fn retiring_instance_keys(&self) -> Result<Vec<RetiringInstanceKey>, StoreError> {
        self.decide(|state| state.retiring_instance_keys.clone())
    }

    async fn instance_keys(&self) -> Result<Vec<InstanceKeyRecord>, StoreError> {
        self.decide(|state| {
            let mut keys = state.instance_keys.clone();
            keys.sort_by_key(|key| (key.created_at, key.id));
            keys
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
