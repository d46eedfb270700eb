//! The delivery of the audit log to a sink: its lease and its position.

use super::super::lease;
use crate::db::{Reply, Tx};
use crate::failure::Failure;
use crate::schema::audit_delivery;
use crate::stored::AnyId;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::audit::{DeliveryLease, DeliveryPosition, DeliveryState, RecordDelivered};
use vault_core::time::Timestamp;

/// The key of the one row of `audit_delivery`.
const SINGLETON: i64 = 1;

/// Acquires the lease of the delivery. Returns the position, or `None` if another process has the lease.
pub(crate) async fn take(tx: &Tx<'_>, lease: &DeliveryLease) -> Result<Option<DeliveryPosition>, Failure> {
    let DeliveryLease { holder, now, until, first } = lease;
    let new = diesel::insert_into(audit_delivery::table)
        .values((
            audit_delivery::singleton.eq(SINGLETON),
            audit_delivery::checkpoint.eq(first.checkpoint),
            audit_delivery::key_id.eq(AnyId::from_text(&first.key)),
            audit_delivery::code.eq(&first.code),
        ))
        .on_conflict_do_nothing();
    tx.execute(new).await?;
    let (table, longest_seconds) = ("audit_delivery", DeliveryLease::LONGEST_SECONDS);
    let request = lease::Request { table, holder, now: *now, until: *until, longest_seconds };
    if !lease::acquire(tx, request).await? {
        return Ok(None);
    }
    Ok(read(tx).await?.map(|state| state.position))
}

/// Moves the position, if the holder still has the lease and the position is the expected one.
pub(crate) fn record<'t>(tx: &'t Tx<'_>, delivered: &RecordDelivered) -> Reply<'t, usize> {
    let RecordDelivered { holder, from, to } = delivered;
    let row = audit_delivery::table
        .filter(audit_delivery::singleton.eq(SINGLETON))
        .filter(audit_delivery::holder.eq(holder.hyphenated().to_string()))
        .filter(audit_delivery::checkpoint.eq(*from));
    let position = (
        audit_delivery::checkpoint.eq(to.checkpoint),
        audit_delivery::key_id.eq(AnyId::from_text(&to.key)),
        audit_delivery::code.eq(to.code.clone()),
    );
    tx.execute(diesel::update(row).set(position))
}

/// Reads the position, and until when a process has the lease.
pub(crate) async fn read(tx: &Tx<'_>) -> Result<Option<DeliveryState>, Failure> {
    let row = audit_delivery::table.filter(audit_delivery::singleton.eq(SINGLETON)).select((
        audit_delivery::checkpoint,
        audit_delivery::key_id,
        audit_delivery::code,
        audit_delivery::until,
    ));
    let row: Option<(i64, AnyId, Vec<u8>, Option<i64>)> = tx.first(row).await?;
    Ok(row.map(|(checkpoint, key, code, until)| DeliveryState {
        position: DeliveryPosition { checkpoint, key: key.to_string(), code },
        until: until.map(Timestamp::from_millis),
    }))
}
