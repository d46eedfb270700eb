//! Credentials.

use super::row::{CredentialRow, IdempotencyRow, VersionRow};
use super::{Answer, Decided, MemoryStore, State};
use async_trait::async_trait;
use std::collections::BTreeMap;
use vault_core::credential::Superseded;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    ChangeCredential, CredentialChange, CredentialRepository, DeleteCredential, Find, Idempotency, ListCredentials,
    SaveCredential, StoreError, StoredCredential, StoredVersion, StoredVersions,
};
use vault_core::sealed::{KeyState, SealedCredential};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

#[async_trait]
impl CredentialRepository for MemoryStore {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        Ok(self.carry_out(command, |state, _, now, act| save(state, now, act))??)
    }

    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            Ok(query.key.and_then(|idempotency| state.earlier_save(query.of, &idempotency)).transpose()?)
        })?
    }

    async fn list_credentials(&self, query: ListCredentials) -> Result<Vec<StoredCredential>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            let wanted = |row: &&StoredCredential| {
                query.filter.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
                    && query.filter.kind.is_none_or(|kind| row.kind == kind)
                    && query.after.is_none_or(|after| row.id < after)
            };
            let newest_first = state.credentials_of(query.organization).rev();
            Ok(newest_first.map(|row| &row.stored).filter(wanted).take(query.limit).cloned().collect())
        })?
    }

    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            Ok(state.credentials.get(&(query.of, query.key)).map(|row| row.stored.clone()))
        })?
    }

    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            Ok(state.credentials.get(&(query.of, query.key)).map(|row| StoredVersions {
                current: row.stored.clone(),
                created_at: row.version_created_at,
                highest: row.highest,
                others: row.others.iter().map(|(number, version)| version.stored(*number)).collect(),
            }))
        })?
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        Ok(self.carry_out(command, |state, _, now, act| change(state, now, act))??)
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError> {
        let deleted: Answer<bool> = self.carry_out(command, |state, _, _, act| {
            let place = (act.organization, act.id);
            match state.credentials.get(&place) {
                None => Decided::Refused(Ok(false)),
                Some(row) if act.revision.is_some_and(|revision| revision != row.stored.revision) => {
                    Decided::Refused(Err(Refusal::Changed))
                }
                Some(_) => {
                    state.credentials.remove(&place);
                    Decided::Done(Ok(true))
                }
            }
        })?;
        Ok(deleted?)
    }
}

fn save(state: &mut State, now: Timestamp, command: SaveCredential) -> Decided<Answer<CredentialId>> {
    let limit_reached = command.limit_reached();
    let SaveCredential { organization, id, version, kind, namespace, sealed, idempotency, limit } = command;
    // First of all: a request that was carried out is answered as it was then, whatever has changed since.
    if let Some(earlier) = idempotency.as_ref().and_then(|key| state.earlier_save(organization, key)) {
        return Decided::Refused(earlier.map(|(credential, _)| credential));
    }
    if state.active_key(organization) != Some(sealed.key) {
        return Decided::Refused(Err(Refusal::Contended));
    }
    let count = i64::try_from(state.credentials_of(organization).count()).unwrap_or(i64::MAX);
    if count >= limit {
        return Decided::Refused(Err(limit_reached));
    }
    if let Some(idempotency) = idempotency {
        state.remember(organization, idempotency, (id, version), now);
    }
    let stored = StoredCredential {
        id,
        kind,
        namespace,
        version,
        created_at: now,
        updated_at: now,
        revision: 1,
        staged: None,
        key: sealed.key,
        information: sealed.information.clone(),
    };
    let row = CredentialRow { stored, sealed, version_created_at: now, highest: version, others: BTreeMap::new() };
    state.credentials.insert((organization, id), row);
    Decided::Done(Ok(id))
}

fn change(state: &mut State, now: Timestamp, command: ChangeCredential) -> Decided<Answer<i64>> {
    let ChangeCredential { organization, id, revision, change } = command;
    let new = match &change {
        CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => Some(version.clone()),
        CredentialChange::Promote { .. } | CredentialChange::Destroy(_) => None,
    };
    if let Some(idempotency) = new.as_ref().and_then(|version| version.idempotency.as_ref())
        && let Some(earlier) = state.earlier_save(organization, idempotency)
    {
        return Decided::Refused(earlier.map(|(_, version)| version));
    }
    let active_key = state.active_key(organization);
    let Some(row) = state.credentials.get_mut(&(organization, id)) else {
        return Decided::Refused(Err(Refusal::NotFound));
    };
    if row.stored.revision != revision {
        return Decided::Refused(Err(Refusal::Changed));
    }
    if new.as_ref().is_some_and(|version| active_key != Some(version.sealed.key)) {
        return Decided::Refused(Err(Refusal::Contended));
    }
    let number = match change {
        CredentialChange::Replace { version, destroy_at } => {
            row.highest = version.number;
            row.make_current(version.number, version.sealed, now, Superseded { at: now, destroy_at });
            row.destroy(&version.destroyed);
            version.number
        }
        CredentialChange::Stage(version) => {
            row.highest = version.number;
            row.destroy(&version.destroyed);
            let staged = VersionRow { sealed: version.sealed, created_at: now, superseded: None };
            row.others.insert(version.number, staged);
            version.number
        }
        CredentialChange::Promote { number, destroy_at, destroyed } => {
            let promoted = row.others.remove(&number).expect("it was read with this revision");
            row.make_current(number, promoted.sealed, promoted.created_at, Superseded { at: now, destroy_at });
            row.destroy(&destroyed);
            number
        }
        CredentialChange::Destroy(number) => {
            row.destroy(&[number]);
            number
        }
    };
    row.stored.staged = row.others.iter().find(|(_, other)| other.superseded.is_none()).map(|(number, _)| *number);
    row.stored.revision += 1;
    row.stored.updated_at = now;
    if let Some(idempotency) = new.and_then(|version| version.idempotency) {
        state.remember(organization, idempotency, (id, number), now);
    }
    Decided::Done(Ok(number))
}

impl CredentialRow {
    fn make_current(&mut self, number: i64, sealed: SealedCredential, created_at: Timestamp, now: Superseded) {
        let before = VersionRow {
            sealed: std::mem::replace(&mut self.sealed, sealed),
            created_at: std::mem::replace(&mut self.version_created_at, created_at),
            superseded: Some(now),
        };
        self.others.insert(std::mem::replace(&mut self.stored.version, number), before);
        self.stored.key = self.sealed.key;
        self.stored.information = self.sealed.information.clone();
    }

    fn destroy(&mut self, numbers: &[i64]) {
        self.others.retain(|number, _| !numbers.contains(number));
    }
}

impl VersionRow {
    fn stored(&self, number: i64) -> StoredVersion {
        StoredVersion {
            number,
            created_at: self.created_at,
            superseded: self.superseded,
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
        idempotency: Idempotency,
        (credential, version): (CredentialId, i64),
        now: Timestamp,
    ) {
        let row = IdempotencyRow { body: idempotency.body, credential, version, created_at: now };
        self.idempotency.insert((organization, idempotency.account, idempotency.key), row);
    }

    /// The credential and version that an earlier request under the key made.
    fn earlier_save(
        &self,
        organization: OrganizationId,
        idempotency: &Idempotency,
    ) -> Option<Answer<(CredentialId, i64)>> {
        let place = (organization, idempotency.account, idempotency.key.clone());
        let earlier = self.idempotency.get(&place)?;
        let same = earlier.body == idempotency.body;
        Some(if same { Ok((earlier.credential, earlier.version)) } else { Err(Refusal::IdempotencyMismatch) })
    }

    fn active_key(&self, organization: OrganizationId) -> Option<KeyId> {
        let keys = &self.organization_keys.get(&organization)?.keys;
        keys.iter().find(|key| key.state == KeyState::Active).map(|key| key.id)
    }
}
