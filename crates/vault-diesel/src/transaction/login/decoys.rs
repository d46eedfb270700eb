//! Rows that login attempts read and write instead of those of an account. Each function executes the same number of
//! statements, columns and locks as for the row of an account.

use super::super::account::row::SignedRow;
use super::found::FoundRow;
use crate::db::{Reply, Share, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{decoy_accounts, decoys};
use diesel::dsl::auto_type;
use diesel::result::QueryResult;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _};
use vault_core::audit::SealedAuditRecord;
use vault_core::time::Timestamp;

/// The row that a decoy replaces. Accounts have their own table.
#[derive(Clone, Copy)]
#[repr(i64)]
pub(crate) enum Part {
    /// The throttle bucket that counts an attempt.
    Class = 0,
    /// The row of an account's logins.
    Logins = 1,
    /// The entry of the audit log.
    Entry = 2,
    /// The organization.
    Organization = 3,
}

/// No decoy has this part, as most accounts have no bucket of the network of an attempt.
const NO_PART: i64 = -1;

#[auto_type(no_type_alias)]
fn decoy_of(part: i64, decoy: i64) -> _ {
    decoys::table.filter(decoys::part.eq(part)).filter(decoys::decoy.eq(decoy))
}

/// The columns of [`SignedRow`].
#[auto_type(no_type_alias)]
fn signed_columns() -> _ {
    (
        decoy_accounts::organization_id,
        decoy_accounts::id,
        decoy_accounts::email,
        decoy_accounts::role,
        decoy_accounts::state,
        decoy_accounts::version,
        decoy_accounts::password_id,
        decoy_accounts::seed_id,
        decoy_accounts::sessions_since,
        decoy_accounts::kept_session,
    )
}

/// Reads and decodes an account with its organization.
pub(crate) async fn find(tx: &Tx<'_>, decoy: u16) -> Result<(), Failure> {
    let found = decoy_accounts::table
        .inner_join(decoys::table.on(decoys::decoy.eq(decoy_accounts::decoy)))
        .filter(decoys::part.eq(Part::Organization as i64))
        .filter(decoy_accounts::decoy.eq(i64::from(decoy)))
        .select((
            decoy_accounts::organization_state,
            signed_columns(),
            (decoy_accounts::grant_digest, decoy_accounts::grant_key_id),
            decoy_accounts::password,
            decoy_accounts::seed,
        ));
    tx.first::<FoundRow, _>(found).await?.map(FoundRow::decode).transpose()?;
    Ok(())
}

/// Locks the bucket of a network and the shared one.
pub(crate) async fn lock_classes(tx: &Tx<'_>, decoy: u16) -> QueryResult<()> {
    let classes = decoys::table
        .filter(decoys::decoy.eq(i64::from(decoy)))
        .filter(decoys::part.eq(Part::Class as i64).or(decoys::part.eq(NO_PART)))
        .order(decoys::part)
        .select((decoys::part, decoys::decoy, decoys::writes, decoys::latest));
    let _: Vec<(i64, i64, i64, Option<i64>)> = tx.load(locked(classes, Update)).await?;
    Ok(())
}

/// Locks the row of an account's logins.
pub(crate) async fn lock_logins(tx: &Tx<'_>, decoy: u16) -> QueryResult<()> {
    let row = decoy_of(Part::Logins as i64, i64::from(decoy)).select((decoys::decoy, decoys::writes, decoys::latest));
    let _: Option<(i64, i64, Option<i64>)> = tx.first(locked(row, Update)).await?;
    Ok(())
}

/// Locks an organization and an account, as a transaction does that changes neither.
pub(crate) async fn lock_account(tx: &Tx<'_>, decoy: u16) -> Result<(), Failure> {
    let organization = decoy_of(Part::Organization as i64, i64::from(decoy)).select(decoys::writes);
    let _: Option<i64> = tx.first(locked(organization, Share)).await?;
    let account = decoy_accounts::table.filter(decoy_accounts::decoy.eq(i64::from(decoy))).select(signed_columns());
    tx.first::<SignedRow, _>(locked(account, Share)).await?.map(SignedRow::decode).transpose()?;
    Ok(())
}

/// Writes a row. Its content changes every time, because SQLite does not write a page that stays the same.
pub(crate) fn write<'t>(tx: &'t Tx<'_>, part: Part, decoy: u16, now: Timestamp) -> Reply<'t, usize> {
    let row = diesel::update(decoy_of(part as i64, i64::from(decoy)));
    tx.execute(row.set((decoys::writes.eq(decoys::writes + 1), decoys::latest.eq(now.as_millis()))))
}

/// Writes an entry instead of one of the audit log: one row for each decoy, so that no one can make the table grow.
pub(crate) async fn record(tx: &Tx<'_>, decoy: u16, entry: &SealedAuditRecord) -> QueryResult<()> {
    let mut content = entry.record.to_authenticated_bytes();
    content.extend_from_slice(entry.code.as_bytes());
    let row = diesel::update(decoy_of(Part::Entry as i64, i64::from(decoy))).set((
        decoys::writes.eq(decoys::writes + 1),
        decoys::latest.eq(entry.record.at.as_millis()),
        decoys::content.eq(content),
    ));
    tx.execute(row).await?;
    Ok(())
}
