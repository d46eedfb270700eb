//! Checkpoints, each of which seals entries.

use super::LARGEST_LIST;
use crate::db::{Db, Reply, Tx};
use crate::failure::Failure;
use crate::schema::{audit, audit_checkpoints};
use crate::stored::{AnyId, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::audit::{Checkpoint, SealedCheckpoint, StoredCheckpoint};
use vault_core::digest::Digest;
use vault_core::id::AuditId;
use vault_core::time::Timestamp;

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
            code: digest(self.code)?,
        })
    }
}

pub(crate) async fn newest(tx: &Tx<'_>) -> Result<Option<StoredCheckpoint>, Failure> {
    let newest = audit_checkpoints::table.order(audit_checkpoints::number.desc()).select(CheckpointRow::as_select());
    Ok(tx.page(newest, 1).await?.into_iter().next().map(CheckpointRow::decode))
}

/// Reads checkpoints after a number.
pub(crate) async fn following(tx: &Tx<'_>, after: i64, limit: usize) -> Result<Vec<StoredCheckpoint>, Failure> {
    let following = audit_checkpoints::table
        .filter(audit_checkpoints::number.gt(after))
        .order(audit_checkpoints::number)
        .select(CheckpointRow::as_select());
    Ok(tx.page(following, limit).await?.into_iter().map(CheckpointRow::decode).collect())
}

/// Inserts a checkpoint, unless one with its number exists.
pub(crate) fn insert<'t>(tx: &'t Tx<'_>, sealed: &SealedCheckpoint) -> Reply<'t, usize> {
    let SealedCheckpoint { checkpoint, key, code } = sealed;
    let entries: Vec<u8> = checkpoint.entries.iter().flat_map(|id| *id.as_bytes()).collect();
    let new = diesel::insert_into(audit_checkpoints::table)
        .values((
            audit_checkpoints::number.eq(checkpoint.number),
            audit_checkpoints::at.eq(checkpoint.at.as_millis()),
            audit_checkpoints::entries.eq(entries),
            audit_checkpoints::hash.eq(checkpoint.hash.as_bytes().to_vec()),
            audit_checkpoints::key_id.eq(key.stored()),
            audit_checkpoints::code.eq(code.as_bytes().to_vec()),
        ))
        .on_conflict_do_nothing();
    tx.execute(new)
}

/// Records a checkpoint in entries without one. Returns their number.
pub(crate) async fn seal(tx: &Tx<'_>, entries: &[AuditId], checkpoint: i64) -> Result<usize, Failure> {
    let mut sealed = 0;
    for ids in entries.chunks(LARGEST_LIST) {
        let ids = audit::id.eq_any(ids.iter().map(|id| id.stored()));
        let unsealed = audit::table.filter(ids).filter(audit::checkpoint.is_null());
        sealed += tx.execute(diesel::update(unsealed).set(audit::checkpoint.eq(checkpoint))).await?;
    }
    Ok(sealed)
}

/// Removes the IDs of entries from a checkpoint.
pub(crate) fn empty<'t>(tx: &'t Tx<'_>, start: &SealedCheckpoint) -> Reply<'t, usize> {
    let SealedCheckpoint { checkpoint, key, code } = start;
    let row = audit_checkpoints::table
        .filter(audit_checkpoints::number.eq(checkpoint.number))
        .filter(audit_checkpoints::hash.eq(checkpoint.hash.as_bytes().to_vec()));
    let emptied = (
        audit_checkpoints::entries.eq(Vec::new()),
        audit_checkpoints::key_id.eq(key.stored()),
        audit_checkpoints::code.eq(code.as_bytes().to_vec()),
    );
    tx.execute(diesel::update(row).set(emptied))
}

/// Removes the checkpoints before a number, and entries.
pub(crate) async fn remove(tx: &Tx<'_>, before: i64, entries: &[AuditId]) -> Result<(), Failure> {
    let earlier = audit_checkpoints::table.filter(audit_checkpoints::number.lt(before));
    tx.execute(diesel::delete(earlier)).await?;
    for ids in entries.chunks(LARGEST_LIST) {
        let ids = audit::id.eq_any(ids.iter().map(|id| id.stored()));
        tx.execute(diesel::delete(audit::table.filter(ids))).await?;
    }
    Ok(())
}
