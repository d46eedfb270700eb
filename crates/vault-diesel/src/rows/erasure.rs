//! Deletion of the credentials, idempotency keys and activations of a deleted organization. Its credentials cannot be
//! decrypted since its keys were deleted. There are too many rows for one transaction.

use crate::db::{Reply, Tx};
use crate::failure::Failure;
use crate::schema::{
    activations, credential_labels, credential_secrets, credential_uses, credentials, erasures, idempotency_keys,
};
use crate::stored::{AnyId, IdBytes, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _, delete};
use vault_core::id::OrganizationId;
use vault_core::maintenance::EXPIRED_SLICE;

/// Records that rows of the organization remain. Part of the transaction that deletes it.
pub(super) fn start<'t>(tx: &'t Tx<'_>, organization: OrganizationId) -> Reply<'t, usize> {
    let new = erasures::organization_id.eq(organization.stored());
    tx.execute(diesel::insert_into(erasures::table).values(new).on_conflict_do_nothing())
}

/// Deletes a slice of the rows of a deleted organization. Returns `false` if there is none.
pub(super) async fn erase_slice(tx: &Tx<'_>) -> Result<bool, Failure> {
    let pending: Vec<AnyId> = tx.load(erasures::table.select(erasures::organization_id)).await?;
    let decoded = pending.iter().find_map(|id| id.decode::<OrganizationId>("erasures").ok());
    let Some(organization) = decoded.map(|id| id.stored()) else { return Ok(false) };
    let remained = erase_credentials(tx, organization).await?
        || erase_idempotency_keys(tx, organization).await?
        || erase_activations(tx, organization).await?;
    if !remained {
        tx.execute(delete(erasures::table.filter(erasures::organization_id.eq(organization)))).await?;
    }
    Ok(true)
}

async fn erase_credentials(tx: &Tx<'_>, of: IdBytes) -> Result<bool, Failure> {
    let slice =
        credentials::table.filter(credentials::organization_id.eq(of)).order(credentials::id).select(credentials::id);
    let slice: Vec<AnyId> = tx.page(slice, EXPIRED_SLICE).await?;
    let Some(last) = slice.last() else { return Ok(false) };
    let secrets = credential_secrets::table
        .filter(credential_secrets::organization_id.eq(of))
        .filter(credential_secrets::id.eq_any(&slice));
    let labels = credential_labels::table
        .filter(credential_labels::organization_id.eq(of))
        .filter(credential_labels::id.le(last));
    let uses =
        credential_uses::table.filter(credential_uses::organization_id.eq(of)).filter(credential_uses::id.le(last));
    tx.execute(delete(secrets)).await?;
    tx.execute(delete(labels)).await?;
    tx.execute(delete(uses)).await?;
    let rows = credentials::table.filter(credentials::organization_id.eq(of)).filter(credentials::id.le(last));
    tx.execute(delete(rows)).await?;
    Ok(true)
}

async fn erase_idempotency_keys(tx: &Tx<'_>, of: IdBytes) -> Result<bool, Failure> {
    let account = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(of))
        .order(idempotency_keys::account_id)
        .select(idempotency_keys::account_id);
    let Some(account) = tx.page::<AnyId, _>(account, 1).await?.pop() else { return Ok(false) };
    let slice = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(of))
        .filter(idempotency_keys::account_id.eq(&account))
        .order(idempotency_keys::key)
        .select(idempotency_keys::key);
    let slice: Vec<String> = tx.page(slice, EXPIRED_SLICE).await?;
    let Some(last) = slice.last() else { return Ok(false) };
    let rows = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(of))
        .filter(idempotency_keys::account_id.eq(&account))
        .filter(idempotency_keys::key.le(last));
    tx.execute(delete(rows)).await?;
    Ok(true)
}

async fn erase_activations(tx: &Tx<'_>, of: IdBytes) -> Result<bool, Failure> {
    let slice =
        activations::table.filter(activations::organization_id.eq(of)).order(activations::id).select(activations::id);
    let slice: Vec<AnyId> = tx.page(slice, EXPIRED_SLICE).await?;
    let Some(last) = slice.last() else { return Ok(false) };
    let rows = activations::table.filter(activations::organization_id.eq(of)).filter(activations::id.le(last));
    tx.execute(delete(rows)).await?;
    Ok(true)
}
