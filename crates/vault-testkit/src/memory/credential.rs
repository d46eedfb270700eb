//! Credentials.

use super::row::{CredentialRow, IdempotencyRow};
use super::{Answer, Decided, MemoryStore, State};
use async_trait::async_trait;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    CredentialRepository, DeleteCredential, Find, Idempotency, ListCredentials, SaveCredential, StoreError,
    StoredCredential,
};
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

#[async_trait]
impl CredentialRepository for MemoryStore {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        Ok(self.carry_out(command, |state, _, now, act| save(state, now, act))??)
    }

    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<CredentialId>, StoreError> {
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

    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError> {
        self.carry_out(command, |state, _, _, act| match state.credentials.remove(&(act.organization, act.id)) {
            Some(_) => Decided::Done(true),
            None => Decided::Refused(false),
        })
    }
}

fn save(state: &mut State, now: Timestamp, command: SaveCredential) -> Decided<Answer<CredentialId>> {
    let limit_reached = command.limit_reached();
    let SaveCredential { organization, id, version, kind, namespace, sealed, idempotency, limit } = command;
    // First of all: a request that was carried out is answered as it was then, whatever has changed since.
    if let Some(earlier) = idempotency.as_ref().and_then(|key| state.earlier_save(organization, key)) {
        return Decided::Refused(earlier);
    }
    if state.active_key(organization) != Some(sealed.key) {
        return Decided::Refused(Err(Refusal::Contended));
    }
    let count = i64::try_from(state.credentials_of(organization).count()).unwrap_or(i64::MAX);
    if count >= limit {
        return Decided::Refused(Err(limit_reached));
    }
    if let Some(idempotency) = idempotency {
        let row = IdempotencyRow { body: idempotency.body, credential: id, created_at: now };
        state.idempotency.insert((organization, idempotency.account, idempotency.key), row);
    }
    let stored = StoredCredential {
        id,
        kind,
        namespace,
        version,
        created_at: now,
        updated_at: now,
        key: sealed.key,
        information: sealed.information.clone(),
    };
    state.credentials.insert((organization, id), CredentialRow { stored, sealed });
    Decided::Done(Ok(id))
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

    fn earlier_save(&self, organization: OrganizationId, idempotency: &Idempotency) -> Option<Answer<CredentialId>> {
        let place = (organization, idempotency.account, idempotency.key.clone());
        let earlier = self.idempotency.get(&place)?;
        let same = earlier.body == idempotency.body;
        Some(if same { Ok(earlier.credential) } else { Err(Refusal::IdempotencyMismatch) })
    }

    fn active_key(&self, organization: OrganizationId) -> Option<KeyId> {
        let keys = &self.organization_keys.get(&organization)?.keys;
        keys.iter().find(|key| key.state == KeyState::Active).map(|key| key.id)
    }
}
