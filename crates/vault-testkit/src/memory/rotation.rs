//! Moving credentials between keys.

use super::row::CredentialRow;
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{
    DestroyOrganizationKey, FindSealed, KeyDestruction, KeyRotation, MoveSealed, SealedCredential, StoreError,
};
use vault_core::sealed::KeyState;

#[async_trait]
impl KeyRotation for MemoryStore {
    async fn find_sealed(&self, query: FindSealed) -> Result<Vec<SealedCredential>, StoreError> {
        self.decide(|state| {
            let found = state.sealed_under(query.organization, query.key);
            let found = found.filter(|row| query.after.is_none_or(|after| row.stored.id > after));
            found.skip(query.skip).take(query.limit).map(CredentialRow::sealed).collect()
        })
    }

    async fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Result<i64, StoreError> {
        self.decide(|state| state.count_sealed(organization, key))
    }

    async fn move_sealed(&self, command: MoveSealed) -> Result<Option<usize>, StoreError> {
        self.decide(|state| {
            let MoveSealed { organization, from, to, credentials } = command;
            if state.active_key(organization) != Some(to) {
                return None;
            }
            let mut moved = 0;
            for sealed in credentials {
                if let Some(stored) = state.credentials.get_mut(&(organization, sealed.id)) {
                    moved += usize::from(stored.take_over((from, to), sealed));
                }
            }
            Some(moved)
        })
    }

    async fn destroy_organization_key(&self, command: DestroyOrganizationKey) -> Result<KeyDestruction, StoreError> {
        self.decide(|state| {
            let DestroyOrganizationKey { organization, key, fingerprint, audit } = command;
            if !state.binds(organization, &fingerprint) {
                return KeyDestruction::NotRetiring;
            }
            let in_use = state.count_sealed(organization, key) > 0;
            let Some(keys) = state.organization_keys.get_mut(&organization) else { return KeyDestruction::NotRetiring };
            let place = keys.keys.iter().position(|row| row.id == key && row.state == KeyState::Retiring);
            let Some(place) = place else { return KeyDestruction::NotRetiring };
            if in_use {
                return KeyDestruction::InUse;
            }
            keys.keys.remove(place);
            keys.fingerprint_wrapped = fingerprint.after;
            state.audit.push(audit);
            KeyDestruction::Destroyed
        })
    }
}

impl State {
    fn sealed_under(&self, organization: OrganizationId, key: KeyId) -> impl Iterator<Item = &CredentialRow> {
        self.credentials_of(organization).filter(move |row| row.key == key)
    }

    fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> i64 {
        i64::try_from(self.sealed_under(organization, key).count()).unwrap_or(i64::MAX)
    }
}

impl CredentialRow {
    fn sealed(&self) -> SealedCredential {
        SealedCredential {
            id: self.stored.id,
            revision: self.stored.revision,
            card: self.stored.card.clone(),
            data: self.data.iter().map(|(number, row)| (*number, row.data.clone())).collect(),
        }
    }

    /// Stores the resealed credential, unless it was changed or moved in the meantime.
    fn take_over(&mut self, (from, to): (KeyId, KeyId), sealed: SealedCredential) -> bool {
        if self.key != from || self.stored.revision != sealed.revision {
            return false;
        }
        (self.key, self.stored.card) = (to, sealed.card);
        for (number, data) in sealed.data {
            if let Some(row) = self.data.get_mut(&number) {
                row.data = data;
            }
        }
        true
    }
}
