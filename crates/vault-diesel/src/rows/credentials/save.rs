//! Saves of credentials.

use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::{NewClaim, NewCredential, NewLabel, NewSecret};
use crate::schema::{credential_labels, credential_secrets, credentials, idempotency_keys};
use crate::stored::{Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use futures_util::future::try_join_all;
use futures_util::try_join;
use vault_core::credential::{EarlierRequest, NewCredentialRow};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::Idempotency;

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
