//! Rows that take the writes of attempts that decide nothing. Each function stands for what is done to a row of an
//! account, with as many statements and locks.

use super::super::backend::{Connection, RunQuery, for_share, for_update};
use crate::failure::Failure;
use crate::schema::decoys;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::time::Timestamp;

/// What a decoy stands for.
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
    /// The account.
    Account = 4,
}

macro_rules! row_of {
    ($part:expr, $decoy:expr) => {
        decoys::table.filter(decoys::part.eq($part as i64)).filter(decoys::decoy.eq(i64::from($decoy)))
    };
}

/// Takes a row, to write it.
pub(crate) async fn take(connection: &mut Connection, part: Part, decoy: u16) -> Result<(), Failure> {
    let row = row_of!(part, decoy).select((decoys::writes, decoys::latest));
    let _: Option<(i64, Option<i64>)> = for_update!(row).get_result(connection).await.optional()?;
    Ok(())
}

/// Holds a row as it is.
pub(crate) async fn hold(connection: &mut Connection, part: Part, decoy: u16) -> Result<(), Failure> {
    let row = row_of!(part, decoy).select((decoys::writes, decoys::latest));
    let _: Option<(i64, Option<i64>)> = for_share!(row).get_result(connection).await.optional()?;
    Ok(())
}

/// Writes a row. Its content changes every time: SQLite writes no page that stays the same.
pub(crate) async fn write(connection: &mut Connection, part: Part, decoy: u16, now: Timestamp) -> Result<(), Failure> {
    diesel::update(row_of!(part, decoy))
        .set((decoys::writes.eq(decoys::writes + 1), decoys::latest.eq(now.as_millis())))
        .execute(connection)
        .await?;
    Ok(())
}
