//! Credentials.

use super::row::{CredentialRow, IdempotencyRow};
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    CredentialRepository, DeleteCredential, Idempotency, ListCredentials, SaveCredential, SaveOutcome, ShowCredential,
    StoreError, StoredCredential,
};
use vault_core::principal::PrincipalRefusal;
use vault_core::sealed::KeyState;

/// The version of a credential that has just been saved.
const FIRST_VERSION: i64 = 1;

#[async_trait]
impl CredentialRepository for MemoryStore {
    async fn save_credential(&self, command: SaveCredential) -> Result<SaveOutcome, StoreError> {
        self.decide(|state| save(state, command))
    }

    async fn list_credentials(
        &self,
        query: ListCredentials,
    ) -> Result<Result<Vec<StoredCredential>, PrincipalRefusal>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            let organization = query.principal.organization();
            let wanted = |row: &&StoredCredential| {
                query.filter.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
                    && query.filter.kind.is_none_or(|kind| row.kind == kind)
                    && query.after.is_none_or(|after| row.id < after)
            };
            let newest_first = state.credentials_of(organization).rev();
            Ok(newest_first.map(|row| &row.stored).filter(wanted).take(query.limit).cloned().collect())
        })
    }

    async fn show_credential(
        &self,
        query: ShowCredential,
    ) -> Result<Result<Option<StoredCredential>, PrincipalRefusal>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            let place = (query.principal.organization(), query.id);
            Ok(state.credentials.get(&place).map(|row| row.stored.clone()))
        })
    }

    async fn delete_credential(&self, command: DeleteCredential) -> Result<Result<bool, PrincipalRefusal>, StoreError> {
        self.decide(|state| {
            state.judge(&command.principal, command.now)?;
            let place = (command.principal.organization(), command.id);
            let was_there = state.credentials.remove(&place).is_some();
            if was_there {
                state.audit.push(command.audit);
            }
            Ok(was_there)
        })
    }
}

fn save(state: &mut State, command: SaveCredential) -> SaveOutcome {
    let SaveCredential { principal, now, id, kind, namespace, sealed, idempotency, limit, audit } = command;
    if let Err(refusal) = state.judge(&principal, now) {
        return SaveOutcome::Refused(refusal);
    }
    let organization = principal.organization();
    let place = |idempotency: &Idempotency| (organization, principal.account(), idempotency.key.clone());
    // First of all: a request that was carried out is answered as it was then, whatever has changed since.
    if let Some(idempotency) = &idempotency
        && let Some(earlier) = state.idempotency.get(&place(idempotency))
    {
        let same = earlier.body == idempotency.body;
        return if same { SaveOutcome::Replayed(earlier.credential) } else { SaveOutcome::IdempotencyMismatch };
    }
    if state.active_key(organization) != Some(sealed.key) {
        return SaveOutcome::KeyInactive;
    }
    let count = i64::try_from(state.credentials_of(organization).count()).unwrap_or(i64::MAX);
    if count >= limit {
        return SaveOutcome::LimitReached;
    }
    if let Some(idempotency) = idempotency {
        let row = IdempotencyRow { body: idempotency.body, credential: id, created_at: now };
        state.idempotency.insert(place(&idempotency), row);
    }
    let stored = StoredCredential {
        id,
        kind,
        namespace,
        version: FIRST_VERSION,
        created_at: now,
        updated_at: now,
        key: sealed.key,
        information: sealed.information.clone(),
    };
    state.credentials.insert((organization, id), CredentialRow { stored, sealed });
    state.audit.push(audit);
    SaveOutcome::Saved
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

    fn active_key(&self, organization: OrganizationId) -> Option<KeyId> {
        let keys = &self.organization_keys.get(&organization)?.keys;
        keys.iter().find(|key| key.state == KeyState::Active).map(|key| key.id)
    }
}
