//! A new TOTP secret that its owner has not confirmed. Its callers have locked the account.

use crate::db::{Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::pending_seeds;
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;

/// A secret that is not confirmed.
pub(crate) struct PendingSeed {
    pub(crate) seed: SealedSeed,
    pub(crate) expires_at: Timestamp,
    pub(crate) tried: u32,
}

#[auto_type(no_type_alias)]
fn seed_of(organization: IdBytes, account: IdBytes) -> _ {
    pending_seeds::table
        .filter(pending_seeds::organization_id.eq(organization))
        .filter(pending_seeds::account_id.eq(account))
}

/// Stores a secret. It replaces an earlier one.
pub(crate) async fn put(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
    seed: &SealedSeed,
    expires_at: Timestamp,
) -> Result<(), Failure> {
    delete(tx, organization, account).await?;
    let new = diesel::insert_into(pending_seeds::table).values((
        pending_seeds::organization_id.eq(organization.stored()),
        pending_seeds::account_id.eq(account.stored()),
        pending_seeds::seed_id.eq(seed.id.stored()),
        pending_seeds::seed.eq(seed.blob.as_bytes()),
        pending_seeds::expires_at.eq(expires_at.as_millis()),
        pending_seeds::tried.eq(0),
    ));
    tx.execute(new).await?;
    Ok(())
}

/// Locks the secret.
pub(crate) async fn lock(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<PendingSeed>, Failure> {
    const TABLE: &str = "pending_seeds";
    let row = seed_of(organization.stored(), account.stored()).select((
        pending_seeds::seed_id,
        pending_seeds::seed,
        pending_seeds::expires_at,
        pending_seeds::tried,
    ));
    let row: Option<(Column<SeedId>, Column<Blob>, i64, i64)> = tx.first(locked(row, Update)).await?;
    let Some((id, blob, expires_at, tried)) = row else { return Ok(None) };
    Ok(Some(PendingSeed {
        seed: SealedSeed { id: id.decode(TABLE, &account, "seed_id")?, blob: blob.decode(TABLE, &account, "seed")? },
        expires_at: Timestamp::from_millis(expires_at),
        tried: u32::try_from(tried).map_err(|_| Failure::damaged(TABLE, account.to_string(), "tried"))?,
    }))
}

/// Counts a passcode that was tried to confirm the secret.
pub(crate) fn count<'t>(tx: &'t Tx<'_>, organization: OrganizationId, account: AccountId) -> Reply<'t, usize> {
    let row = diesel::update(seed_of(organization.stored(), account.stored()));
    tx.execute(row.set(pending_seeds::tried.eq(pending_seeds::tried + 1)))
}

/// Deletes the secret, if there is one.
pub(crate) fn delete<'t>(tx: &'t Tx<'_>, organization: OrganizationId, account: AccountId) -> Reply<'t, usize> {
    tx.execute(diesel::delete(seed_of(organization.stored(), account.stored())))
}
