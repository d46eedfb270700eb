//! A new passcode seed that waits to be confirmed by its owner. Whoever asks has taken the account.

use super::super::backend::{Connection, RunQuery, for_update};
use crate::failure::Failure;
use crate::schema::pending_seeds;
use crate::stored::{Column, StoredId as _};
use crate::update::update;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;

/// A seed that waits.
pub(crate) struct PendingSeed {
    pub(crate) seed: SealedSeed,
    pub(crate) expires_at: Timestamp,
    pub(crate) tried: u32,
}

/// The row of the seed of an account.
macro_rules! row_of {
    ($organization:expr, $account:expr) => {
        pending_seeds::table
            .filter(pending_seeds::organization_id.eq($organization.stored()))
            .filter(pending_seeds::account_id.eq($account.stored()))
    };
}

/// Has a seed wait, in the place of any that does.
pub(crate) async fn put(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    seed: &SealedSeed,
    expires_at: Timestamp,
) -> Result<(), Failure> {
    clear(connection, organization, account).await?;
    diesel::insert_into(pending_seeds::table)
        .values((
            pending_seeds::organization_id.eq(organization.stored()),
            pending_seeds::account_id.eq(account.stored()),
            pending_seeds::seed_id.eq(seed.id.stored()),
            pending_seeds::seed.eq(seed.blob.as_bytes()),
            pending_seeds::expires_at.eq(expires_at.as_millis()),
            pending_seeds::tried.eq(0),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes the seed that waits.
pub(crate) async fn hold(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<PendingSeed>, Failure> {
    const TABLE: &str = "pending_seeds";
    let row: Option<(Column<SeedId>, Column<Blob>, i64, i64)> = for_update!(row_of!(organization, account).select((
        pending_seeds::seed_id,
        pending_seeds::seed,
        pending_seeds::expires_at,
        pending_seeds::tried
    )))
    .get_result(connection)
    .await
    .optional()?;
    let Some((id, blob, expires_at, tried)) = row else { return Ok(None) };
    Ok(Some(PendingSeed {
        seed: SealedSeed { id: id.decode(TABLE, &account, "seed_id")?, blob: blob.decode(TABLE, &account, "seed")? },
        expires_at: Timestamp::from_millis(expires_at),
        tried: u32::try_from(tried).map_err(|_| Failure::damaged(TABLE, account.to_string(), "tried"))?,
    }))
}

/// Counts a code that is to confirm the seed.
pub(crate) async fn count(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<(), Failure> {
    update(row_of!(organization, account))
        .set(pending_seeds::tried.eq(pending_seeds::tried + 1))
        .execute(connection)
        .await?;
    Ok(())
}

/// Nothing waits any more.
pub(crate) async fn clear(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<(), Failure> {
    diesel::delete(row_of!(organization, account)).execute(connection).await?;
    Ok(())
}
