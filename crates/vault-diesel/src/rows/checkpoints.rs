//! Checkpoints of the audit log, and its delivery to a sink.

use super::audit::{LARGEST_LIST, entries};
use super::{TxRows, changed_one, lease, several, then};
use crate::db::Db;
use crate::schema::{audit, audit_checkpoints, audit_delivery};
use crate::stored::{AnyId, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::audit::{
    Checkpoint, DeliveryLease, DeliveryPosition, DeliveryState, RecordDelivered, SealedCheckpoint, StoredCheckpoint,
    UnsealedEntry,
};
use vault_core::digest::Digest;
use vault_core::id::AuditId;
use vault_core::port::{CheckpointRows, Reply};
use vault_core::time::Timestamp;

/// The key of the one row of `audit_delivery`.
const SINGLETON: i64 = 1;

#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_checkpoints, check_for_backend(Db))]
struct CheckpointRow {
    number: i64,
    at: i64,
    entries: Vec<u8>,
    hash: Vec<u8>,
    key_id: AnyId,
    code: Vec<u8>,
}

impl CheckpointRow {
    fn decode(self) -> StoredCheckpoint {
        StoredCheckpoint { number: self.number, sealed: self.sealed() }
    }

    fn sealed(self) -> Option<SealedCheckpoint> {
        let digest = |bytes: Vec<u8>| bytes.try_into().ok().map(Digest::from_bytes);
        let ids = self.entries.chunks(16).map(|bytes| bytes.try_into().ok().map(AuditId::from_bytes));
        let (entries, at) = (ids.collect::<Option<_>>()?, Timestamp::from_millis(self.at));
        let checkpoint = Checkpoint { number: self.number, at, entries, hash: digest(self.hash)? };
        Some(SealedCheckpoint {
            checkpoint,
            key: self.key_id.decode("audit_checkpoints").ok()?,
            mac: digest(self.code)?,
        })
    }
}

impl CheckpointRows for TxRows<'_> {
    fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Reply<'_, Vec<UnsealedEntry>> {
        several(entries::unsealed(&self.tx, after, limit))
    }

    fn newest_checkpoint(&self) -> Reply<'_, Option<StoredCheckpoint>> {
        let newest = audit_checkpoints::table.order(audit_checkpoints::number.desc());
        then(self.tx.page(newest.select(CheckpointRow::as_select()), 1), |rows| {
            Ok(rows.into_iter().next().map(CheckpointRow::decode))
        })
    }

    fn checkpoints(&self, after: i64, limit: usize) -> Reply<'_, Vec<StoredCheckpoint>> {
        let following = audit_checkpoints::table
            .filter(audit_checkpoints::number.gt(after))
            .order(audit_checkpoints::number)
            .select(CheckpointRow::as_select());
        then(self.tx.page(following, limit), |rows| Ok(rows.into_iter().map(CheckpointRow::decode).collect()))
    }

    fn insert_checkpoint(&self, SealedCheckpoint { checkpoint, key, mac }: &SealedCheckpoint) -> Reply<'_, bool> {
        let entries: Vec<u8> = checkpoint.entries.iter().flat_map(|id| *id.as_bytes()).collect();
        let new = diesel::insert_into(audit_checkpoints::table)
            .values((
                audit_checkpoints::number.eq(checkpoint.number),
                audit_checkpoints::at.eq(checkpoint.at.as_millis()),
                audit_checkpoints::entries.eq(entries),
                audit_checkpoints::hash.eq(checkpoint.hash.as_bytes().to_vec()),
                audit_checkpoints::key_id.eq(key.stored()),
                audit_checkpoints::code.eq(mac.as_bytes().to_vec()),
            ))
            .on_conflict_do_nothing();
        then(self.tx.execute(new), changed_one)
    }

    fn seal_entries(&self, entries: &[AuditId], checkpoint: i64) -> Reply<'_, usize> {
        let entries: Vec<_> = entries.iter().map(|id| id.stored()).collect();
        several(async move {
            let mut sealed = 0;
            for ids in entries.chunks(LARGEST_LIST) {
                let unsealed = audit::table.filter(audit::id.eq_any(ids)).filter(audit::checkpoint.is_null());
                sealed += self.tx.execute(diesel::update(unsealed).set(audit::checkpoint.eq(checkpoint))).await?;
            }
            Ok(sealed)
        })
    }

    fn empty_checkpoint(&self, SealedCheckpoint { checkpoint, key, mac }: &SealedCheckpoint) -> Reply<'_, bool> {
        let row = audit_checkpoints::table
            .filter(audit_checkpoints::number.eq(checkpoint.number))
            .filter(audit_checkpoints::hash.eq(checkpoint.hash.as_bytes().to_vec()));
        let emptied = (
            audit_checkpoints::entries.eq(Vec::new()),
            audit_checkpoints::key_id.eq(key.stored()),
            audit_checkpoints::code.eq(mac.as_bytes().to_vec()),
        );
        then(self.tx.execute(diesel::update(row).set(emptied)), changed_one)
    }

    fn remove_audit(&self, before: i64, entries: &[AuditId]) -> Reply<'_, ()> {
        let entries: Vec<_> = entries.iter().map(|id| id.stored()).collect();
        several(async move {
            let earlier = audit_checkpoints::table.filter(audit_checkpoints::number.lt(before));
            self.tx.execute(diesel::delete(earlier)).await?;
            for ids in entries.chunks(LARGEST_LIST) {
                self.tx.execute(diesel::delete(audit::table.filter(audit::id.eq_any(ids)))).await?;
            }
            Ok(())
        })
    }

    fn take_delivery_lease(&self, lease: &DeliveryLease) -> Reply<'_, Option<DeliveryPosition>> {
        let DeliveryLease { holder, now, until, first } = lease.clone();
        several(async move {
            let new = diesel::insert_into(audit_delivery::table)
                .values((
                    audit_delivery::singleton.eq(SINGLETON),
                    audit_delivery::checkpoint.eq(first.checkpoint),
                    audit_delivery::key_id.eq(AnyId::from_text(&first.key)),
                    audit_delivery::code.eq(&first.mac),
                ))
                .on_conflict_do_nothing();
            self.tx.execute(new).await?;
            let (table, longest_seconds) = ("audit_delivery", DeliveryLease::LONGEST_SECONDS);
            let request = lease::Request { table, holder: &holder, now, until, longest_seconds };
            match lease::acquire(&self.tx, request).await? {
                true => Ok(self.tx.first(delivery(SINGLETON)).await?.map(|row| decode(row).position)),
                false => Ok(None),
            }
        })
    }

    fn move_delivery_position(&self, delivered: &RecordDelivered) -> Reply<'_, bool> {
        let RecordDelivered { holder, from, to } = delivered;
        let row = audit_delivery::table
            .filter(audit_delivery::singleton.eq(SINGLETON))
            .filter(audit_delivery::holder.eq(holder.hyphenated().to_string()))
            .filter(audit_delivery::checkpoint.eq(*from));
        let position = (
            audit_delivery::checkpoint.eq(to.checkpoint),
            audit_delivery::key_id.eq(AnyId::from_text(&to.key)),
            audit_delivery::code.eq(to.mac.clone()),
        );
        then(self.tx.execute(diesel::update(row).set(position)), changed_one)
    }

    fn delivery_state(&self) -> Reply<'_, Option<DeliveryState>> {
        then(self.tx.first(delivery(SINGLETON)), |row| Ok(row.map(decode)))
    }
}

type DeliveryRow = (i64, AnyId, Vec<u8>, Option<i64>);

/// The position of the delivery, and until when a process has the lease.
#[auto_type(no_type_alias)]
fn delivery(singleton: i64) -> _ {
    audit_delivery::table.filter(audit_delivery::singleton.eq(singleton)).select((
        audit_delivery::checkpoint,
        audit_delivery::key_id,
        audit_delivery::code,
        audit_delivery::until,
    ))
}

fn decode((checkpoint, key, mac, until): DeliveryRow) -> DeliveryState {
    let position = DeliveryPosition { checkpoint, key: key.to_string(), mac };
    DeliveryState { position, until: until.map(Timestamp::from_millis) }
}
