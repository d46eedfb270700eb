//! A new TOTP secret that its owner has not confirmed. Its callers have locked the account.

use crate::db::{Db, Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::pending_seeds;
use crate::stored::{CodeColumns, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::passcode::PendingSeed;
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;

const TABLE: &str = "pending_seeds";

/// The columns that the MAC covers, and the MAC.
#[derive(Queryable, Selectable)]
#[diesel(table_name = pending_seeds, check_for_backend(Db))]
pub(crate) struct PendingRow {
    seed_id: Column<SeedId>,
    seed: Column<Blob>,
    expires_at: i64,
    #[diesel(select_expression = (pending_seeds::digest, pending_seeds::digest_key_id))]
    digest: CodeColumns,
}

impl PendingRow {
    pub(crate) fn decode(self, account: AccountId) -> Result<PendingSeed, Failure> {
        let id = self.seed_id.decode(TABLE, &account, "seed_id")?;
        Ok(PendingSeed {
            seed: SealedSeed { id, blob: self.seed.decode(TABLE, &account, "seed")? },
            expires_at: Timestamp::from_millis(self.expires_at),
            digest: self.digest.decode(TABLE, &account, "digest")?,
        })
    }
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
    PendingSeed { seed, expires_at, digest }: &PendingSeed,
) -> Result<(), Failure> {
    delete(tx, organization, account).await?;
    let new = diesel::insert_into(pending_seeds::table).values((
        pending_seeds::organization_id.eq(organization.stored()),
        pending_seeds::account_id.eq(account.stored()),
        pending_seeds::seed_id.eq(seed.id.stored()),
        pending_seeds::seed.eq(seed.blob.as_bytes()),
        pending_seeds::expires_at.eq(expires_at.as_millis()),
        pending_seeds::tried.eq(0),
        pending_seeds::digest.eq(digest.code.as_bytes().as_slice()),
        pending_seeds::digest_key_id.eq(digest.key.stored()),
    ));
    tx.execute(new).await?;
    Ok(())
}

/// Locks the secret. Returns also the number of passcodes that were tried.
pub(crate) async fn lock(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<(PendingSeed, u32)>, Failure> {
    let row = seed_of(organization.stored(), account.stored()).select((PendingRow::as_select(), pending_seeds::tried));
    let Some((row, tried)) = tx.first::<(PendingRow, i64), _>(locked(row, Update)).await? else { return Ok(None) };
    let tried = u32::try_from(tried).map_err(|_| Failure::damaged(TABLE, account.to_string(), "tried"))?;
    Ok(Some((row.decode(account)?, tried)))
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
