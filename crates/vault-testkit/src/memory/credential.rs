//! Credentials.

use super::State;
use super::row::{CredentialRow, IdempotencyRow, VersionRow};
use std::collections::BTreeMap;
use vault_core::credential::{ChangeEffects, EarlierRequest, NewVersion, SaveCredential, Superseded, VersionEffect};
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{Idempotency, PreviousVersion, StoredCredential, StoredMetadata, StoredVersion, StoredVersions};
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;

impl State {
    pub(super) fn insert_credential(&mut self, save: &SaveCredential, now: Timestamp) {
        let SaveCredential { organization, id, version, kind, sealed, description, idempotency, .. } = save.clone();
        self.remember(organization, idempotency, (id, version), now);
        let stored = StoredCredential {
            id,
            kind,
            namespace: save.namespace.clone(),
            version,
            created_at: now,
            updated_at: now,
            revision: 1,
            staged: None,
            highest: version,
            listed: save.listed.clone(),
            previous: None,
            expires_at: save.expires_at,
            vend: description.vend,
            code: save.code,
            metadata: description.metadata,
            check: save.check,
            last_activated_at: None,
            key: sealed.key,
            information: sealed.information.clone(),
        };
        let (labels, others) = (description.labels, BTreeMap::new());
        let row = CredentialRow { stored, sealed, labels, version_created_at: now, others };
        self.credentials.insert((organization, id), row);
    }

    pub(super) fn change_credential(&mut self, effects: &ChangeEffects<'_>) {
        let ChangeEffects { change, at, .. } = effects;
        let place = (change.organization, change.id);
        let row = self.credentials.get_mut(&place).expect("it was read in this transaction");
        row.change(effects);
        if let Some(StoredMetadata { metadata, labels, vend }) = &change.description {
            (row.stored.metadata, row.labels, row.stored.vend) = (metadata.clone(), labels.clone(), *vend);
        }
        row.stored.listed = change.listed.clone();
        row.stored.code = change.code;
        row.stored.expires_at = change.expires_at;
        row.stored.updated_at = *at;
        if let Some(new) = change.new_version() {
            self.remember(change.organization, new.idempotency.clone(), (change.id, new.number), *at);
        }
    }
}

impl CredentialRow {
    /// Returns the credential and its versions, without their data.
    pub(super) fn versions(&self) -> StoredVersions {
        StoredVersions {
            current: self.stored.clone(),
            created_at: self.version_created_at,
            others: self.others.iter().map(|(number, version)| version.stored(*number)).collect(),
        }
    }

    fn change(&mut self, effects: &ChangeEffects<'_>) {
        let now = effects.at;
        match effects.version {
            VersionEffect::Keep => {}
            VersionEffect::Stage(new) => {
                self.others.insert(new.number, VersionRow::new(new, now));
            }
            VersionEffect::Replace(new, superseded) => {
                self.make_current(new.number, VersionRow::new(new, now), superseded);
            }
            VersionEffect::Promote(number, superseded) => {
                let promoted = self.others.remove(&number).expect("it was read with this revision");
                self.make_current(number, promoted, superseded);
            }
        }
        self.others.retain(|number, _| !effects.destroyed.contains(number));
        if self.stored.previous.is_some_and(|previous| effects.destroyed.contains(&previous.number)) {
            let kept = self.others.iter().filter_map(|(number, other)| Some((other.superseded?, *number)));
            let newest = kept.max_by_key(|(superseded, number)| (superseded.at, *number));
            self.stored.previous =
                newest.map(|(superseded, number)| PreviousVersion { number, until: superseded.destroy_at });
        }
        (self.stored.highest, self.stored.staged, self.stored.revision) =
            (effects.highest, effects.staged, effects.revision);
    }

    fn make_current(&mut self, number: i64, new: VersionRow, superseded: Superseded) {
        self.stored.previous = Some(PreviousVersion { number: self.stored.version, until: superseded.destroy_at });
        let before = VersionRow {
            sealed: std::mem::replace(&mut self.sealed, new.sealed),
            created_at: std::mem::replace(&mut self.version_created_at, new.created_at),
            superseded: Some(superseded),
            check: std::mem::replace(&mut self.stored.check, new.check),
        };
        self.others.insert(std::mem::replace(&mut self.stored.version, number), before);
        self.stored.key = self.sealed.key;
        self.stored.information = self.sealed.information.clone();
    }
}

impl VersionRow {
    fn new(new: &NewVersion, now: Timestamp) -> Self {
        Self { sealed: new.sealed.clone(), created_at: now, superseded: None, check: new.check }
    }

    fn stored(&self, number: i64) -> StoredVersion {
        StoredVersion {
            number,
            created_at: self.created_at,
            superseded: self.superseded,
            check: self.check,
            key: self.sealed.key,
            information: self.sealed.information.clone(),
        }
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

    pub(super) fn active_key(&self, organization: OrganizationId) -> Option<KeyId> {
        let keys = &self.organization_keys.get(&organization)?.keys;
        keys.iter().find(|key| key.state == KeyState::Active).map(|key| key.id)
    }
}
