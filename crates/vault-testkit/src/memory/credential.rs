//! Credentials.

use super::State;
use super::row::{CredentialRow, DataRow, IdempotencyRow};
use vault_core::activation::FetchedCredential;
use vault_core::credential::{CredentialUpdate, EarlierRequest, NewCredentialRow, NewVersion};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{Idempotency, StoredCredential, StoredVersion, StoredVersions};
use vault_core::time::Timestamp;

impl State {
    pub(super) fn insert_credential(&mut self, new: &NewCredentialRow) {
        let NewCredentialRow { organization, id, kind, namespace, vend, expires_at, key, card, version, labels, at } =
            new.clone();
        let stored = StoredCredential {
            id,
            kind,
            namespace,
            version: version.number,
            vend,
            expires_at,
            created_at: at,
            updated_at: at,
            revision: 1,
            card,
            check: version.check,
            last_activated_at: None,
        };
        let data = [(version.number, DataRow::new(&version))].into_iter().collect();
        self.credentials.insert((organization, id), CredentialRow { stored, key, labels, data });
        self.remember(organization, version.idempotency, (id, version.number), at);
    }

    pub(super) fn change_credential(&mut self, change: &CredentialUpdate<'_>) {
        let place = (change.organization, change.id);
        let row = self.credentials.get_mut(&place).expect("it was read in this transaction");
        row.data.retain(|number, _| !change.effects.destroyed.contains(number));
        for (number, destroy_at) in &change.effects.moved {
            row.data.get_mut(number).expect("it was read with this revision").destroy_at = *destroy_at;
        }
        if let Some(version) = &change.version {
            row.data.insert(version.number, DataRow::new(version));
        }
        if let Some(labels) = &change.labels {
            row.labels.clone_from(labels);
        }
        let stored = &mut row.stored;
        (stored.version, stored.vend, stored.expires_at) = (change.current, change.vend, change.expires_at);
        (stored.card, stored.revision) = (change.card.clone(), change.before.revision + 1);
        (stored.check, stored.updated_at) = (change.check, change.at);
        if let Some(version) = &change.version {
            self.remember(change.organization, version.idempotency.clone(), (change.id, version.number), change.at);
        }
    }
}

impl DataRow {
    fn new(version: &NewVersion) -> Self {
        Self { data: version.data.clone(), destroy_at: None, check: version.check }
    }
}

impl CredentialRow {
    /// Returns the credential and its versions, without their data.
    pub(super) fn versions(&self) -> StoredVersions {
        let others = self.data.iter().filter(|(number, _)| **number != self.stored.version);
        let stored =
            others.map(|(number, row)| StoredVersion { number: *number, destroy_at: row.destroy_at, check: row.check });
        StoredVersions { others: stored.collect(), current: self.stored.clone() }
    }

    /// Returns the credential with the sealed data of a version.
    pub(super) fn fetched(&self, version: i64) -> Option<FetchedCredential> {
        let data = self.data.get(&version)?.data.clone();
        Some(FetchedCredential { row: self.stored.clone(), version, data })
    }
}

impl State {
    pub(super) fn credentials_of(
        &self,
        organization: OrganizationId,
    ) -> impl DoubleEndedIterator<Item = &CredentialRow> {
        let first = (organization, CredentialId::from_bytes([0x00; 16]));
        let last = (organization, CredentialId::from_bytes([0xff; 16]));
        self.credentials.range(first..=last).map(|(_, row)| row)
    }

    fn remember(
        &mut self,
        organization: OrganizationId,
        idempotency: Option<Idempotency>,
        (credential, version): (CredentialId, i64),
        now: Timestamp,
    ) {
        if let Some(Idempotency { account, key, body }) = idempotency {
            let row = IdempotencyRow {
                request: EarlierRequest { body: *body.current(), credential, version },
                created_at: now,
            };
            self.idempotency.insert((organization, account, key), row);
        }
    }

    /// Returns the earlier request with the same key.
    pub(super) fn earlier_request(
        &self,
        organization: OrganizationId,
        idempotency: &Idempotency,
    ) -> Option<EarlierRequest> {
        let place = (organization, idempotency.account, idempotency.key.clone());
        self.idempotency.get(&place).map(|row| row.request)
    }
}
