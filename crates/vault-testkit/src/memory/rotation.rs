//! Moving credentials between keys.

use super::row::CredentialRow;
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{
    DestroyOrganizationKey, FindSealed, KeyDestruction, KeyRotation, MoveSealed, SealedContent, SealedCount,
    SealedPart, SealedRow, StoreError,
};
use vault_core::sealed::{KeyState, SealedCredential};

#[async_trait]
impl KeyRotation for MemoryStore {
    async fn find_sealed(&self, query: FindSealed) -> Result<Vec<SealedRow>, StoreError> {
        self.decide(|state| {
            let found = state.sealed_under(query.organization, query.key, query.part);
            let found = found.into_iter().filter(|row| query.after.is_none_or(|after| row.place() > after));
            found.skip(query.skip).take(query.limit).collect()
        })
    }

    async fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Result<SealedCount, StoreError> {
        self.decide(|state| state.count_sealed(organization, key))
    }

    async fn move_sealed(&self, command: MoveSealed) -> Result<Option<usize>, StoreError> {
        self.decide(|state| {
            let MoveSealed { organization, from, to, rows, part } = command;
            if state.active_key(organization) != Some(to) {
                return None;
            }
            let mut moved = 0;
            for row in rows {
                if let Some(stored) = state.credentials.get_mut(&(organization, row.credential)) {
                    moved += usize::from(stored.take_over(part, from, row));
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
            let in_use = state.count_sealed(organization, key).total() > 0;
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

impl CredentialRow {
    /// Returns the parts of this kind, by version.
    fn parts(&self, part: SealedPart) -> Vec<SealedRow> {
        let credential = self.stored.id;
        let row = |version, content| {
            let id = match content {
                SealedContent::Version(_) => self.stored.listed.id(version),
                SealedContent::Metadata(_) => None,
            };
            SealedRow { credential, version, id, content }
        };
        match part {
            SealedPart::Current => {
                vec![row(self.stored.version, SealedContent::Version(self.sealed.clone()))]
            }
            SealedPart::Other => {
                let others = self.others.iter();
                others.map(|(number, other)| row(*number, SealedContent::Version(other.sealed.clone()))).collect()
            }
            SealedPart::Metadata => {
                let metadata = self.stored.metadata.iter();
                metadata
                    .map(|sealed_metadata| {
                        row(sealed_metadata.revision, SealedContent::Metadata(sealed_metadata.clone()))
                    })
                    .collect()
            }
        }
    }

    /// Stores a resealed part, if the part is unchanged since it was read.
    fn take_over(&mut self, part: SealedPart, from: KeyId, row: SealedRow) -> bool {
        let same = |stored: &SealedRow| stored.place() == row.place() && stored.key() == from;
        if !self.parts(part).iter().any(same) {
            return false;
        }
        match (part, row.content) {
            (SealedPart::Current, SealedContent::Version(sealed)) => {
                (self.stored.key, self.stored.information) = (sealed.key, sealed.information.clone());
                self.sealed = SealedCredential { data: self.sealed.data.clone(), ..sealed };
            }
            (SealedPart::Other, SealedContent::Version(sealed)) => {
                let Some(other) = self.others.get_mut(&row.version) else { return false };
                other.sealed = SealedCredential { data: other.sealed.data.clone(), ..sealed };
            }
            (SealedPart::Metadata, SealedContent::Metadata(sealed_metadata)) => {
                self.stored.metadata = Some(sealed_metadata)
            }
            _ => return false,
        }
        true
    }
}

impl State {
    fn sealed_under(&self, organization: OrganizationId, key: KeyId, part: SealedPart) -> Vec<SealedRow> {
        let parts = self.credentials_of(organization).flat_map(|row| row.parts(part));
        parts.filter(|row| row.key() == key).collect()
    }

    fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> SealedCount {
        let count = |part| i64::try_from(self.sealed_under(organization, key, part).len()).unwrap_or(i64::MAX);
        SealedCount {
            current: count(SealedPart::Current),
            other: count(SealedPart::Other),
            metadata: count(SealedPart::Metadata),
        }
    }
}
