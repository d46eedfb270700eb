//! Writing credentials, with their labels and idempotency keys.

use super::row::credential_of;
use super::sealed::secrets_of;
use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::{NewClaim, NewCredential, NewLabel, NewSecret, expiry_column};
use crate::schema::{credential_labels, credential_secrets, credentials, idempotency_keys};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use futures_util::future::{OptionFuture, try_join_all};
use futures_util::try_join;
use vault_core::check::CheckReason;
use vault_core::credential::{CredentialUpdate, EarlierRequest, NewCredentialRow};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::Idempotency;
use vault_core::time::Timestamp;

/// Inserts a credential with its labels and idempotency key.
pub(crate) async fn insert(tx: &Tx<'_>, save: &NewCredentialRow) -> Result<(), Failure> {
    let (organization, id, version) = (save.organization, save.id, &save.version);
    let claim = version.idempotency.as_ref().map(|key| NewClaim::of(organization, (id, version.number), key, save.at));
    let labels = save.labels.iter().map(|label| NewLabel::of(organization, id, label));
    try_join!(
        try_join_all(claim.map(|claim| tx.insert_later(idempotency_keys::table, claim))),
        tx.insert_later(credentials::table, NewCredential::of(save)),
        tx.insert_later(credential_secrets::table, NewSecret::of(organization, id, version)),
        try_join_all(labels.map(|label| tx.insert_later(credential_labels::table, label))),
    )?;
    Ok(())
}

/// Reads the earlier request under a key.
pub(crate) async fn earlier_request(
    tx: &Tx<'_>,
    organization: OrganizationId,
    idempotency: &Idempotency,
) -> Result<Option<EarlierRequest>, Failure> {
    tx.insert_pending::<idempotency_keys::table>().await?;
    type Row = (Column<Digest>, Column<CredentialId>, i64);
    let account = idempotency.account;
    let claim = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization.stored()))
        .filter(idempotency_keys::account_id.eq(account.stored()))
        .filter(idempotency_keys::key.eq(idempotency.key.as_str()))
        .select((idempotency_keys::body, idempotency_keys::credential_id, idempotency_keys::version));
    let Some((body, credential, version)) = tx.first::<Row, _>(claim).await? else { return Ok(None) };
    let body = body.decode("idempotency_keys", &account, "body")?;
    let credential = credential.decode("idempotency_keys", &account, "credential_id")?;
    Ok(Some(EarlierRequest { body, credential, version }))
}

/// Writes a change of a credential.
pub(crate) async fn change(tx: &Tx<'_>, change: &CredentialUpdate<'_>) -> Result<(), Failure> {
    let CredentialUpdate { organization, id, before, check, at, .. } = *change;
    let (of, key) = (organization.stored(), id.stored());
    let secrets = || secrets_of(of, key);
    // Deleting first makes room for the new version next to it: in the other order, SQLite splits a page and joins it again.
    let destroyed = change.effects.destroyed.as_slice();
    let destroyed = (!destroyed.is_empty())
        .then(|| tx.execute(diesel::delete(secrets().filter(credential_secrets::version.eq_any(destroyed)))));
    let moved = change.effects.moved.iter().map(|(number, destroy_at)| {
        let version = diesel::update(secrets().filter(credential_secrets::version.eq(*number)));
        tx.execute(version.set(credential_secrets::destroy_at.eq(destroy_at.map(Timestamp::as_millis))))
    });
    // Unchanged columns are omitted, so that its indexes are not written.
    let has_other_expiry = before.expires_at != change.expires_at;
    let has_other_version = before.version != change.current;
    let changed = (
        credentials::revision.eq(before.revision.saturating_add(1)),
        credentials::card.eq(change.card.as_bytes()),
        credentials::updated_at.eq(at.as_millis()),
        (before.vend != change.vend).then(|| credentials::vend.eq(change.vend.as_str())),
        has_other_expiry.then(|| credentials::expires_at.eq(expiry_column(change.expires_at))),
        has_other_version.then(|| {
            (
                credentials::version.eq(change.current),
                credentials::checked_at.eq(check.map(|check| check.at.as_millis())),
                credentials::check_since.eq(check.map(|check| check.since.as_millis())),
                credentials::check_failed.eq(check.and_then(|check| check.failed).map(CheckReason::as_str)),
            )
        }),
    );
    let (_, moved, _) = try_join!(
        async { OptionFuture::from(destroyed).await.transpose() },
        try_join_all(moved),
        tx.execute(diesel::update(credential_of(of, key)).set(changed)),
    )?;
    if moved.contains(&0) {
        return Err(Failure::damaged("credential_secrets", id.to_string(), "missing"));
    }
    if let Some(labels) = &change.labels {
        replace_labels(tx, organization, id, labels).await?;
    }
    if let Some(version) = &change.version {
        tx.insert_later(credential_secrets::table, NewSecret::of(organization, id, version)).await?;
        if let Some(idempotency) = &version.idempotency {
            let claim = NewClaim::of(organization, (id, version.number), idempotency, at);
            tx.insert_later(idempotency_keys::table, claim).await?;
        }
    }
    Ok(())
}

#[auto_type(no_type_alias)]
fn labels_of(organization: IdBytes, id: IdBytes) -> _ {
    credential_labels::table
        .filter(credential_labels::organization_id.eq(organization))
        .filter(credential_labels::id.eq(id))
}

/// Replaces the labels of a credential.
pub(crate) async fn replace_labels(
    tx: &Tx<'_>,
    organization: OrganizationId,
    id: CredentialId,
    labels: &[Digest],
) -> Result<(), Failure> {
    tx.execute(diesel::delete(labels_of(organization.stored(), id.stored()))).await?;
    let rows = labels.iter().map(|label| NewLabel::of(organization, id, label));
    tx.insert(credential_labels::table, rows).await?;
    Ok(())
}

/// Reads the labels of a credential.
pub(crate) async fn labels(
    tx: &Tx<'_>,
    organization: OrganizationId,
    id: CredentialId,
) -> Result<Vec<Digest>, Failure> {
    let labels = labels_of(organization.stored(), id.stored()).select(credential_labels::label);
    let labels: Vec<Column<Digest>> = tx.load(labels).await?;
    labels.into_iter().map(|label| label.decode("credential_labels", &id, "label")).collect()
}
