//! The sealed parts of credentials, for the rotation of their organization's key.
//!
//! A change of a credential leaves the key in its row, even if it seals the card with a newer one, so that the rotation also moves the
//! data of earlier versions.

use super::row::credential_of;
use super::sealed::{SecretRow, secrets_of};
use crate::db::{Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credentials};
use crate::stored::{BEFORE_ALL_IDS, Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _, update};
use std::collections::HashMap;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::SealedCredential;
use vault_core::sealed::Blob;

/// Reads and locks credentials that another key seals, in the order of their IDs.
pub(crate) async fn sealed_except(
    tx: &Tx<'_>,
    organization: OrganizationId,
    key: KeyId,
    after: Option<CredentialId>,
    limit: usize,
) -> Result<Vec<SealedCredential>, Failure> {
    let rows = credentials::table
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(credentials::id.gt(after.map_or(BEFORE_ALL_IDS, |id| id.stored())))
        .filter(credentials::key_id.ne(key.stored()))
        .order(credentials::id)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select((credentials::id, credentials::key_id, credentials::revision, credentials::card));
    let mut found = Vec::new();
    let mut places = HashMap::new();
    type Row = (Column<CredentialId>, Column<KeyId>, i64, Vec<u8>);
    for (id, key, revision, card) in tx.load::<Row, _>(locked(rows, Update)).await? {
        let id = id.decode("credentials", &"unknown", "id")?;
        let key = key.decode("credentials", &id, "key_id")?;
        places.insert(id, found.len());
        found.push(SealedCredential { id, key, revision, card: Blob::from_bytes(card), data: Vec::new() });
    }
    let ids: Vec<_> = found.iter().map(|credential| credential.id.stored()).collect();
    let secrets = credential_secrets::table
        .filter(credential_secrets::organization_id.eq(organization.stored()))
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

/// Stores the sealed parts of a credential.
pub(crate) async fn reseal(
    tx: &Tx<'_>,
    organization: OrganizationId,
    credential: &SealedCredential,
) -> Result<(), Failure> {
    let (of, id) = (organization.stored(), credential.id.stored());
    let sealed = (credentials::key_id.eq(credential.key.stored()), credentials::card.eq(credential.card.as_bytes()));
    tx.execute(update(credential_of(of, id)).set(sealed)).await?;
    let secrets = credential.data.iter().map(|(version, data)| {
        let row = secrets_of(of, id).filter(credential_secrets::version.eq(*version));
        update(row).set(credential_secrets::data_key.eq(data.data_key.as_bytes()))
    });
    tx.execute_each(secrets).await?;
    Ok(())
}
