//! Rows that attempts read and write where they must not touch those of an account. Each function does what is done to
//! the row of an account, with as many statements, columns and locks.

use super::super::account::row::SignedRow;
use super::super::backend::{Connection, RunQuery, for_share, for_update};
use super::logins::FoundRow;
use crate::failure::Failure;
use crate::schema::{decoy_accounts, decoys};
use crate::update::update;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::audit::SealedAuditRecord;
use vault_core::time::Timestamp;

/// What a decoy stands for. Accounts have a table of their own.
#[derive(Clone, Copy)]
#[repr(i64)]
pub(crate) enum Part {
    /// The class that counts an attempt.
    Class = 0,
    /// The row of an account's logins.
    Logins = 1,
    /// The entry that the audit gets.
    Entry = 2,
    /// The organization.
    Organization = 3,
}

/// No decoy has it, as most accounts have no class of the network that an attempt comes from.
const NO_PART: i64 = -1;

macro_rules! row_of {
    ($part:expr, $decoy:expr) => {
        decoys::table.filter(decoys::part.eq($part as i64)).filter(decoys::decoy.eq(i64::from($decoy)))
    };
}

/// The columns of [`SignedRow`].
macro_rules! signed_columns {
    () => {
        (
            decoy_accounts::organization_id,
            decoy_accounts::id,
            decoy_accounts::email,
            decoy_accounts::role,
            decoy_accounts::state,
            decoy_accounts::version,
            decoy_accounts::password_version,
            decoy_accounts::seed_id,
        )
    };
}

/// Reads and decodes an account with its organization.
pub(crate) async fn find(connection: &mut Connection, decoy: u16) -> Result<(), Failure> {
    let found: Option<FoundRow> = decoy_accounts::table
        .inner_join(decoys::table.on(decoys::decoy.eq(decoy_accounts::decoy)))
        .filter(decoys::part.eq(Part::Organization as i64))
        .filter(decoy_accounts::decoy.eq(i64::from(decoy)))
        .select((
            decoy_accounts::organization_state,
            signed_columns!(),
            (decoy_accounts::grant_digest, decoy_accounts::grant_key_id),
            decoy_accounts::password,
            decoy_accounts::seed,
        ))
        .get_result(connection)
        .await
        .optional()?;
    found.map(FoundRow::decode).transpose()?;
    Ok(())
}

/// Takes the class of a network and the shared one, to write one of them.
pub(crate) async fn take_classes(connection: &mut Connection, decoy: u16) -> Result<(), Failure> {
    let classes = decoys::table
        .filter(decoys::decoy.eq(i64::from(decoy)))
        .filter(decoys::part.eq(Part::Class as i64).or(decoys::part.eq(NO_PART)))
        .order(decoys::part)
        .select((decoys::part, decoys::decoy, decoys::writes, decoys::latest));
    let _: Vec<(i64, i64, i64, Option<i64>)> = for_update!(classes).load(connection).await?;
    Ok(())
}

/// Takes the row of an account's logins, to write it.
pub(crate) async fn take_logins(connection: &mut Connection, decoy: u16) -> Result<(), Failure> {
    let row = row_of!(Part::Logins, decoy).select((decoys::decoy, decoys::writes, decoys::latest));
    let _: Option<(i64, i64, Option<i64>)> = for_update!(row).get_result(connection).await.optional()?;
    Ok(())
}

/// Holds an account and its organization as they are.
pub(crate) async fn hold_account(connection: &mut Connection, decoy: u16) -> Result<(), Failure> {
    let organization = row_of!(Part::Organization, decoy).select(decoys::writes);
    let _: Option<i64> = for_share!(organization).get_result(connection).await.optional()?;
    let account = decoy_accounts::table.filter(decoy_accounts::decoy.eq(i64::from(decoy))).select(signed_columns!());
    let account: Option<SignedRow> = for_share!(account).get_result(connection).await.optional()?;
    account.map(SignedRow::decode).transpose()?;
    Ok(())
}

/// Writes a row. Its content changes every time: SQLite writes no page that stays the same.
pub(crate) async fn write(connection: &mut Connection, part: Part, decoy: u16, now: Timestamp) -> Result<(), Failure> {
    update(row_of!(part, decoy))
        .set((decoys::writes.eq(decoys::writes + 1), decoys::latest.eq(now.as_millis())))
        .execute(connection)
        .await?;
    Ok(())
}

/// Writes an entry in the place of the audit's: one row per decoy, so that nobody can make the table grow.
pub(crate) async fn record(connection: &mut Connection, decoy: u16, entry: &SealedAuditRecord) -> Result<(), Failure> {
    let mut content = entry.record.to_authenticated_bytes();
    content.extend_from_slice(entry.code.as_bytes());
    update(row_of!(Part::Entry, decoy))
        .set((
            decoys::writes.eq(decoys::writes + 1),
            decoys::latest.eq(entry.record.at.as_millis()),
            decoys::content.eq(content),
        ))
        .execute(connection)
        .await?;
    Ok(())
}
