//! Leases: one process works on a task at a time. A table has one row with the columns `singleton`, `holder` and `until`.

use crate::db::{Parts, Tx};
use crate::failure::Failure;
use uuid::Uuid;
use vault_core::time::Timestamp;

/// A lease that a process requests.
pub(crate) struct Request<'a> {
    pub(crate) table: &'static str,
    pub(crate) holder: &'a Uuid,
    pub(crate) now: Timestamp,
    pub(crate) until: Timestamp,
    /// No lease lasts longer, so one that seems to was acquired by a process with a wrong clock.
    pub(crate) longest_seconds: i64,
}

/// Acquires a lease, unless another process has it. Returns whether it was acquired.
pub(crate) async fn acquire(tx: &Tx<'_>, request: Request<'_>) -> Result<bool, Failure> {
    let Request { table, holder, now, until, longest_seconds } = request;
    let holder = holder.hyphenated().to_string();
    let lease: Parts<'_, ()> = Parts::new("UPDATE ")
        .name(table)
        .text(" SET holder = ")
        .string(&holder)
        .text(", until = ")
        .number(until.as_millis())
        .text(" WHERE singleton = 1 AND (holder IS NULL OR holder = ")
        .string(&holder)
        .text(" OR until IS NULL OR until <= ")
        .number(now.as_millis())
        .text(" OR until > ")
        .number(now.plus_seconds(longest_seconds).as_millis())
        .text(")");
    Ok(tx.execute(lease).await? == 1)
}
