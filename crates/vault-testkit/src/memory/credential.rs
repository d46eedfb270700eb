//! Credentials.

use super::row::{CredentialRow, IdempotencyRow, VersionRow};
use super::{Answer, MemoryStore, State};
use async_trait::async_trait;
use std::collections::BTreeMap;
use vault_core::Command;
use vault_core::credential::Superseded;
use vault_core::decision::{
    Authorized, ChangeEffects, ChangeFacts, CredentialFacts, EarlierRequest, EarlierRequests, Outcome, SaveFacts,
    VersionEffect, decide_changes, decide_saves,
};
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    ChangeCredential, CredentialRepository, Find, Idempotency, NewVersion, PreviousVersion, SaveCredential, StoreError,
    StoredCredential, StoredMetadata, StoredVersion, StoredVersions,
};
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;

#[async_trait]
impl CredentialRepository for MemoryStore {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        Ok(self.decide_authorized(command, save)??)
    }

    async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.decide(|state| {
            state.authorize(&query.principal, query.now)?;
            Ok(state.credentials.get(&(query.of, query.key)).map(CredentialRow::versions))
        })?
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        Ok(self.decide_authorized(command, change)??)
    }
}

fn save(state: &mut State, command: Command<SaveCredential>) -> Answer<CredentialId> {
    let save = &command.payload;
    let organization = save.organization;
    let facts = SaveFacts {
        credentials: i64::try_from(state.credentials_of(organization).count()).ok(),
        earlier: state.earlier(organization, save.idempotency.as_ref()),
    };
    let key_active = state.active_key(organization) == Some(save.sealed.key);
    let outcome = decide_saves(facts, [Authorized { command: &command, key_active }]).swap_remove(0);
    if outcome.effects().is_some() {
        let Command { now, audit, payload, .. } = command;
        let SaveCredential {
            id, version, listed, kind, namespace, sealed, description, code, expires_at, check, ..
        } = payload;
        state.remember(organization, payload.idempotency, (id, version), now);
        let stored = StoredCredential {
            id,
            kind,
            namespace,
            version,
            created_at: now,
            updated_at: now,
            revision: 1,
            staged: None,
            highest: version,
            listed,
            previous: None,
            expires_at,
            vend: description.vend,
            code,
            metadata: description.metadata,
            check,
            last_activated_at: None,
            key: sealed.key,
            information: sealed.information.clone(),
        };
        let (labels, others) = (description.labels, BTreeMap::new());
        let row = CredentialRow { stored, sealed, labels, version_created_at: now, others };
        state.credentials.insert((organization, id), row);
        state.audit.push(audit);
    }
    outcome.into_answer()
}

fn change(state: &mut State, command: Command<ChangeCredential>) -> Answer<i64> {
    let (payload, now) = (&command.payload, command.now);
    let (organization, id) = (payload.organization, payload.id);
    let idempotency = payload.new_version().and_then(|version| version.idempotency.clone());
    let row = state.credentials.get(&(organization, id));
    let facts = ChangeFacts {
        credentials: row.map(|row| (id, row.facts())).into_iter().collect(),
        earlier: state.earlier(organization, idempotency.as_ref()),
    };
    let key_active = payload.sealing_key().is_none_or(|key| state.active_key(organization) == Some(key));
    let outcome = decide_changes(facts, [Authorized { command: &command, key_active }]).swap_remove(0);
    if let (Outcome::Done { answer, effects }, Some(row)) = (&outcome, state.credentials.get_mut(&(organization, id))) {
        row.change(effects, now);
        if let Some(StoredMetadata { metadata, labels, vend }) = &payload.description {
            (row.stored.metadata, row.labels, row.stored.vend) = (metadata.clone(), labels.clone(), *vend);
        }
        row.stored.listed = payload.listed.clone();
        row.stored.code = payload.code;
        row.stored.expires_at = payload.expires_at;
        row.stored.updated_at = now;
        state.remember(organization, idempotency, (id, *answer), now);
        state.audit.push(command.audit.clone());
    }
    outcome.into_answer()
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

    fn facts(&self) -> CredentialFacts {
        CredentialFacts {
            revision: self.stored.revision,
            version: self.stored.version,
            staged: self.stored.staged,
            highest: self.stored.highest,
            metadata_key: self.stored.metadata.as_ref().map(|metadata| metadata.key),
        }
    }

    fn change(&mut self, effects: &ChangeEffects<'_>, now: Timestamp) {
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
    /// Returns the refusal of an action that was executed `most` times within the hour.
    pub(super) fn refused_for(
        &self,
        organization: OrganizationId,
        subject: &str,
        most: u32,
        now: Timestamp,
    ) -> Option<u32> {
        self.hourly.get(&(organization, subject.to_owned()))?.refused_for(most, now)
    }

    pub(super) fn count(&mut self, organization: OrganizationId, subject: &str, now: Timestamp) {
        let counted = self.hourly.entry((organization, subject.to_owned())).or_default();
        *counted = counted.plus_one(now);
    }

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

    fn earlier(&self, organization: OrganizationId, idempotency: Option<&Idempotency>) -> EarlierRequests {
        let mut earlier = EarlierRequests::default();
        if let Some(idempotency) = idempotency
            && let Some(request) = self.earlier_request(organization, idempotency)
        {
            earlier.insert(idempotency.account, idempotency.key.clone(), request);
        }
        earlier
    }

    pub(super) fn active_key(&self, organization: OrganizationId) -> Option<KeyId> {
        let keys = &self.organization_keys.get(&organization)?.keys;
        keys.iter().find(|key| key.state == KeyState::Active).map(|key| key.id)
    }
}
