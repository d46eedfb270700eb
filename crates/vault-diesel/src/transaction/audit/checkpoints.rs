//! Checkpoints, each of which seals entries.

use super::super::{Read, Transaction};
use super::{AuditRecorder, LARGEST_LIST};
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::schema::{audit, audit_checkpoints};
use crate::stored::{AnyId, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::audit::{Checkpoint, SealedCheckpoint, StoredCheckpoint};
use vault_core::digest::Digest;
use vault_core::id::AuditId;
use vault_core::port::CutAudit;
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

/// The newest checkpoint.
pub(crate) struct NewestCheckpoint;

impl Read for NewestCheckpoint {
    type Outcome = Option<StoredCheckpoint>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<StoredCheckpoint>, Failure> {
        let newest =
            audit_checkpoints::table.order(audit_checkpoints::number.desc()).select(CheckpointRow::as_select());
        Ok(tx.page(newest, 1).await?.into_iter().next().map(CheckpointRow::decode))
    }
}

/// Checkpoints after a number.
pub(crate) struct ListCheckpoints {
    pub(crate) after: i64,
    pub(crate) limit: usize,
}

impl Read for ListCheckpoints {
    type Outcome = Vec<StoredCheckpoint>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<StoredCheckpoint>, Failure> {
        let following = audit_checkpoints::table
            .filter(audit_checkpoints::number.gt(self.after))
            .order(audit_checkpoints::number)
            .select(CheckpointRow::as_select());
        Ok(tx.page(following, self.limit).await?.into_iter().map(CheckpointRow::decode).collect())
    }
}

impl Transaction for SealedCheckpoint {
    /// Whether the checkpoint was added: it follows the newest one, and all its entries were unsealed.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { checkpoint, key, code } = self;
        if checkpoint.number > 1 {
            let previous = audit_checkpoints::table
                .filter(audit_checkpoints::number.eq(checkpoint.number - 1))
                .select(audit_checkpoints::number);
            if tx.first::<i64, _>(previous).await?.is_none() {
                return Ok(false);
            }
        }
        let entries: Vec<u8> = checkpoint.entries.iter().flat_map(|id| *id.as_bytes()).collect();
        let new = diesel::insert_into(audit_checkpoints::table)
            .values((
                audit_checkpoints::number.eq(checkpoint.number),
                audit_checkpoints::at.eq(checkpoint.at.as_millis()),
                audit_checkpoints::entries.eq(entries),
                audit_checkpoints::hash.eq(checkpoint.hash.as_bytes().as_slice()),
                audit_checkpoints::key_id.eq(key.stored()),
                audit_checkpoints::code.eq(code.as_bytes().as_slice()),
            ))
            .on_conflict_do_nothing();
        if tx.execute(new).await? == 0 {
            return Ok(false);
        }
        let mut sealed = 0;
        for ids in checkpoint.entries.chunks(LARGEST_LIST) {
            let ids = audit::id.eq_any(ids.iter().map(|id| id.stored()));
            let unsealed = audit::table.filter(ids).filter(audit::checkpoint.is_null());
            sealed += tx.execute(diesel::update(unsealed).set(audit::checkpoint.eq(checkpoint.number))).await?;
        }
        if sealed != checkpoint.entries.len() {
            return Ok(false);
        }
        audit.commit_without_entry();
        Ok(true)
    }
}

/// Removes the oldest entries, at most those of one checkpoint at a time.
impl Transaction for CutAudit {
    /// Whether the entries were removed: the first checkpoint is still the expected one.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let SealedCheckpoint { checkpoint, key, code } = &self.start;
        let first = audit_checkpoints::table.order(audit_checkpoints::number).select(audit_checkpoints::number);
        if tx.page::<i64, _>(first, 1).await? != [self.first] {
            return Ok(false);
        }
        let row = audit_checkpoints::table
            .filter(audit_checkpoints::number.eq(checkpoint.number))
            .filter(audit_checkpoints::hash.eq(checkpoint.hash.as_bytes().as_slice()));
        let emptied = diesel::update(row).set((
            audit_checkpoints::entries.eq(Vec::new()),
            audit_checkpoints::key_id.eq(key.stored()),
            audit_checkpoints::code.eq(code.as_bytes().as_slice()),
        ));
        if tx.execute(emptied).await? == 0 {
            return Ok(false);
        }
        let earlier = audit_checkpoints::table.filter(audit_checkpoints::number.lt(checkpoint.number));
        tx.execute(diesel::delete(earlier)).await?;
        for ids in self.entries.chunks(LARGEST_LIST) {
            let ids = audit::id.eq_any(ids.iter().map(|id| id.stored()));
            tx.execute(diesel::delete(audit::table.filter(ids))).await?;
        }
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
}
