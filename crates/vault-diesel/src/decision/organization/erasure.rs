//! Removing the credentials and activations of a deleted organization: unreadable since its keys went, worth nothing
//! since its integrations went, and too many for one transaction.

use super::super::backend::{Connection, RunQuery};
use super::super::{Decided, Verdict};
use crate::failure::Failure;
use crate::schema::{
    activations, credential_labels, credential_secrets, credential_uses, credential_versions, credentials, erasures,
    idempotency_keys,
};
use crate::stored::{AnyId, IdBytes, StoredId as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::id::OrganizationId;

/// Notes that the organization's rows are to go; part of the decision that deletes it.
pub(crate) async fn begin(connection: &mut Connection, organization: OrganizationId) -> Result<(), Failure> {
    diesel::insert_into(erasures::table)
        .values(erasures::organization_id.eq(organization.stored()))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    Ok(())
}

/// The organizations whose rows are still to go.
pub(crate) async fn pending(connection: &mut Connection) -> Result<Vec<AnyId>, Failure> {
    Ok(erasures::table.select(erasures::organization_id).load(connection).await?)
}

/// Removes a slice. `false`: nothing is left of it.
pub(crate) async fn erase(connection: &mut Connection, organization: OrganizationId) -> Decided<bool> {
    let organization = organization.stored();
    if erase_credentials(connection, organization).await?
        || erase_idempotency_keys(connection, organization).await?
        || erase_activations(connection, organization).await?
    {
        return Ok(Verdict::Recorded(true));
    }
    diesel::delete(erasures::table.filter(erasures::organization_id.eq(organization))).execute(connection).await?;
    Ok(Verdict::Recorded(false))
}

async fn erase_credentials(connection: &mut Connection, organization: IdBytes) -> Result<bool, Failure> {
    let slice: Vec<AnyId> = credentials::table
        .filter(credentials::organization_id.eq(organization))
        .order(credentials::id)
        .limit(super::super::maintenance::SLICE)
        .select(credentials::id)
        .load(connection)
        .await?;
    let Some(last) = slice.last() else { return Ok(false) };
    diesel::delete(
        credential_secrets::table
            .filter(credential_secrets::organization_id.eq(organization))
            .filter(credential_secrets::id.eq_any(&slice)),
    )
    .execute(connection)
    .await?;
    diesel::delete(
        credential_versions::table
            .filter(credential_versions::organization_id.eq(organization))
            .filter(credential_versions::id.le(last)),
    )
    .execute(connection)
    .await?;
    diesel::delete(
        credential_labels::table
            .filter(credential_labels::organization_id.eq(organization))
            .filter(credential_labels::id.le(last)),
    )
    .execute(connection)
    .await?;
    diesel::delete(
        credential_uses::table
            .filter(credential_uses::organization_id.eq(organization))
            .filter(credential_uses::id.le(last)),
    )
    .execute(connection)
    .await?;
    diesel::delete(
        credentials::table.filter(credentials::organization_id.eq(organization)).filter(credentials::id.le(last)),
    )
    .execute(connection)
    .await?;
    Ok(true)
}

async fn erase_idempotency_keys(connection: &mut Connection, organization: IdBytes) -> Result<bool, Failure> {
    let account: Option<AnyId> = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization))
        .order(idempotency_keys::account_id)
        .limit(1)
        .select(idempotency_keys::account_id)
        .get_result(connection)
        .await
        .optional()?;
    let Some(account) = account else { return Ok(false) };
    let slice: Vec<String> = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization))
        .filter(idempotency_keys::account_id.eq(&account))
        .order(idempotency_keys::key)
        .limit(super::super::maintenance::SLICE)
        .select(idempotency_keys::key)
        .load(connection)
        .await?;
    let Some(last) = slice.last() else { return Ok(false) };
    diesel::delete(
        idempotency_keys::table
            .filter(idempotency_keys::organization_id.eq(organization))
            .filter(idempotency_keys::account_id.eq(&account))
            .filter(idempotency_keys::key.le(last)),
    )
    .execute(connection)
    .await?;
    Ok(true)
}

async fn erase_activations(connection: &mut Connection, organization: IdBytes) -> Result<bool, Failure> {
    let slice: Vec<AnyId> = activations::table
        .filter(activations::organization_id.eq(organization))
        .order(activations::id)
        .limit(super::super::maintenance::SLICE)
        .select(activations::id)
        .load(connection)
        .await?;
    let Some(last) = slice.last() else { return Ok(false) };
    diesel::delete(
        activations::table.filter(activations::organization_id.eq(organization)).filter(activations::id.le(last)),
    )
    .execute(connection)
    .await?;
    Ok(true)
}
