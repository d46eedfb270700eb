//! Rotation of organization keys: moves credentials from one key to another, and destroys keys that no row names.
//!
//! A change of a credential leaves the key in its row, even if it seals the card with a newer one, so that the rotation also moves the
//! data of earlier versions.

use super::super::audit::AuditRecorder;
use super::super::credential::count;
use super::super::credential::sealed::{SecretRow, secrets_of};
use super::super::{Read, Transaction};
use super::keys::{key_of, rebind};
use crate::db::{KeyShare, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credentials, organization_keys};
use crate::stored::{BEFORE_ALL_IDS, Column, IdBytes, StoredId as _};
use diesel::dsl::{auto_type, exists};
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _, delete, select, update};
use std::collections::HashMap;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{DestroyOrganizationKey, FindSealed, KeyDestruction, MoveSealed, SealedCredential};
use vault_core::sealed::{Blob, KeyState};

/// Credentials that a key seals.
#[auto_type(no_type_alias)]
fn sealed_under(organization: IdBytes, key: IdBytes) -> _ {
    credentials::table.filter(credentials::organization_id.eq(organization)).filter(credentials::key_id.eq(key))
}

impl Read for FindSealed {
    type Outcome = Vec<SealedCredential>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<SealedCredential>, Failure> {
        let (organization, key) = (self.organization.stored(), self.key.stored());
        let bound = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let rows = sealed_under(organization, key)
            .filter(credentials::id.gt(self.after.map_or(BEFORE_ALL_IDS, |id| id.stored())))
            .order(credentials::id)
            .offset(bound(self.skip))
            .limit(bound(self.limit))
            .select((credentials::id, credentials::revision, credentials::card));
        let mut found = Vec::new();
        let mut places = HashMap::new();
        for (id, revision, card) in tx.load::<(Column<CredentialId>, i64, Vec<u8>), _>(rows).await? {
            let id = id.decode("credentials", &"unknown", "id")?;
            places.insert(id, found.len());
            found.push(SealedCredential { id, revision, card: Blob::from_bytes(card), data: Vec::new() });
        }
        let ids: Vec<_> = found.iter().map(|credential| credential.id.stored()).collect();
        let secrets = credential_secrets::table
            .filter(credential_secrets::organization_id.eq(organization))
            .filter(credential_secrets::id.eq_any(ids))
            .order((credential_secrets::id, credential_secrets::version))
            .select((credential_secrets::id, SecretRow::as_select()));
        for (id, secret) in tx.load::<(Column<CredentialId>, SecretRow), _>(secrets).await? {
            let id = id.decode("credential_secrets", &"unknown", "id")?;
            if let Some(credential) = places.get(&id).and_then(|place| found.get_mut(*place)) {
                credential.data.push(secret.data());
            }
        }
        Ok(found)
    }
}

/// The number of credentials that a key seals.
pub(crate) struct CountSealed {
    pub(crate) organization: OrganizationId,
    pub(crate) key: KeyId,
}

impl Read for CountSealed {
    type Outcome = i64;

    async fn read(&self, tx: &Tx<'_>) -> Result<i64, Failure> {
        Ok(tx.one(sealed_under(self.organization.stored(), self.key.stored()).count()).await?)
    }
}

impl Transaction for MoveSealed {
    /// The number of credentials. `None` if the new key is not active.
    type Outcome = Option<usize>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<usize>, Failure> {
        let organization = self.organization.stored();
        // Operations lock it first too, and then rows in any order.
        count::lock(tx, self.organization).await?;
        // The key must not be destroyed before this transaction ends. Its uses may be reserved in the meantime: moves follow
        // each other closely, and a save that had to wait for a pause between them could wait for long.
        let state = key_of(organization, self.to.stored()).select(organization_keys::state);
        let state: Option<Column<KeyState>> = tx.first(locked(state, KeyShare)).await?;
        let state = state.map(|state| state.decode("organization_keys", &self.to, "state")).transpose()?;
        if state != Some(KeyState::Active) {
            return Ok(None);
        }
        audit.commit_without_entry();
        let cards = self.credentials.iter().map(|credential| {
            let row = sealed_under(organization, self.from.stored())
                .filter(credentials::id.eq(credential.id.stored()))
                .filter(credentials::revision.eq(credential.revision));
            update(row)
                .set((credentials::key_id.eq(self.to.stored()), credentials::card.eq(credential.card.as_bytes())))
        });
        let moved = tx.execute_each(cards).await?;
        let moved_rows = self.credentials.iter().zip(&moved).filter(|(_, moved)| **moved == 1);
        let secrets = moved_rows.flat_map(|(credential, _)| credential.data.iter().map(|data| (credential.id, data)));
        let secrets = secrets.map(|(id, (version, data))| {
            let row = secrets_of(organization, id.stored()).filter(credential_secrets::version.eq(*version));
            update(row).set(credential_secrets::data_key.eq(data.data_key.as_bytes()))
        });
        tx.execute_each(secrets).await?;
        Ok(Some(moved.into_iter().sum()))
    }
}

impl Transaction for DestroyOrganizationKey {
    type Outcome = KeyDestruction;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<KeyDestruction, Failure> {
        if !rebind(tx, self.organization, &self.fingerprint).await? {
            return Ok(KeyDestruction::NotRetiring);
        }
        let (organization, key) = (self.organization.stored(), self.key.stored());
        let row = key_of(organization, key);
        let state: Option<Column<KeyState>> = tx.first(locked(row.select(organization_keys::state), Update)).await?;
        let state = state.map(|state| state.decode("organization_keys", &self.key, "state")).transpose()?;
        if state != Some(KeyState::Retiring) {
            return Ok(KeyDestruction::NotRetiring);
        }
        if tx.one::<bool, _>(select(exists(sealed_under(organization, key)))).await? {
            return Ok(KeyDestruction::InUse);
        }
        tx.execute(delete(row)).await?;
        audit.record(tx, &self.audit).await?;
        Ok(KeyDestruction::Destroyed)
    }
}
