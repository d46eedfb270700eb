//! The delivery of the audit log to a sink: its lease and its position.

use super::super::{Read, Transaction, lease};
use super::AuditRecorder;
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::audit_delivery;
use crate::stored::AnyId;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use uuid::Uuid;
use vault_core::audit::{DeliveryPosition, DeliveryState};
use vault_core::port::Delivery;
use vault_core::time::Timestamp;

/// The key of the one row of `audit_delivery`.
const SINGLETON: i64 = 1;

/// Acquires the lease of the delivery.
impl Transaction for Delivery {
    /// The position. `None` if another process has the lease.
    type Outcome = Option<DeliveryPosition>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<DeliveryPosition>, Failure> {
        let Self { holder, now, until, first } = self;
        let new = diesel::insert_into(audit_delivery::table)
            .values((
                audit_delivery::singleton.eq(SINGLETON),
                audit_delivery::checkpoint.eq(first.checkpoint),
                audit_delivery::key_id.eq(AnyId::from_text(&first.key)),
                audit_delivery::code.eq(&first.code),
            ))
            .on_conflict_do_nothing();
        tx.execute(new).await?;
        let (table, longest_seconds) = ("audit_delivery", Self::LONGEST_SECONDS);
        let request = lease::Request { table, holder, now: *now, until: *until, longest_seconds };
        if !lease::acquire(tx, request).await? {
            return Ok(None);
        }
        audit.commit_without_entry();
        Ok(ReadDelivery.read(tx).await?.map(|state| state.position))
    }
}

/// Moves the position, if the holder still has the lease and the position is the expected one.
pub(crate) struct RecordDelivered {
    pub(crate) holder: Uuid,
    pub(crate) from: i64,
    pub(crate) to: DeliveryPosition,
}

impl Transaction for RecordDelivered {
    /// Whether the position was moved.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { holder, from, to } = self;
        let row = audit_delivery::table
            .filter(audit_delivery::singleton.eq(SINGLETON))
            .filter(audit_delivery::holder.eq(holder.hyphenated().to_string()))
            .filter(audit_delivery::checkpoint.eq(*from));
        let position = (
            audit_delivery::checkpoint.eq(to.checkpoint),
            audit_delivery::key_id.eq(AnyId::from_text(&to.key)),
            audit_delivery::code.eq(&to.code),
        );
        let moved = tx.execute(diesel::update(row).set(position)).await? == 1;
        if moved {
            audit.commit_without_entry();
        }
        Ok(moved)
    }
}

/// The position, and until when a process has the lease.
pub(crate) struct ReadDelivery;

impl Read for ReadDelivery {
    type Outcome = Option<DeliveryState>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<DeliveryState>, Failure> {
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
}
