//! The audit trail and its checkpoints.

use super::backend::{Connection, RunQuery, Store, load_page, next_id};
use super::{Decided, Verdict};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::new_row::{NewEntry, OF_INSTANCE};
use crate::schema::{audit, audit_checkpoints, audit_delivery};
use crate::stored::{AFTER_ALL_IDS, AnyId, StoredId as _};
use crate::transaction::authorize::authorize;
use crate::update::update;
use async_trait::async_trait;
use diesel::query_builder::InsertStatement;
use diesel::sql_types::Bool;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, Insertable, IntoSql as _, OptionalExtension as _,
    QueryDsl as _, Queryable, TextExpressionMethods as _,
};
use uuid::Uuid;
use vault_core::audit::{
    AuditEntry, Checkpoint, DeliveryPosition, DeliveryState, SealedAuditRecord, SealedCheckpoint, StoredCheckpoint,
    UnsealedEntry,
};
use vault_core::digest::Digest;
use vault_core::id::{AuditId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{
    AuditLog, AuditOrder, AuditRange, AuditTrail, CutAudit, Delivery, List, RecordedStates, StoreError,
};
use vault_core::principal::{Denial, Scope};
use vault_core::time::Timestamp;

/// How many ids one statement names: SQLite takes up to 32,766 values.
const LARGEST_LIST: usize = 1_000;

#[async_trait]
impl AuditLog for Store {
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError> {
        self.write(records, |connection, records| Box::pin(append(connection, records))).await
    }
}

async fn append(connection: &mut Connection, records: &[SealedAuditRecord]) -> Decided<()> {
    for sealed in records {
        record(connection, sealed).await?;
    }
    Ok(Verdict::Recorded(()))
}

/// The statement that appends one entry.
pub(crate) fn entry(
    sealed: &SealedAuditRecord,
) -> InsertStatement<audit::table, <NewEntry<'_> as Insertable<audit::table>>::Values> {
    diesel::insert_into(audit::table).values(NewEntry::of(sealed))
}

/// Appends one entry; part of the decision that it records.
pub(crate) async fn record(connection: &mut Connection, sealed: &SealedAuditRecord) -> Result<(), Failure> {
    entry(sealed).execute(connection).await?;
    Ok(())
}

#[async_trait]
impl AuditTrail for Store {
    async fn list_entries(&self, query: List<String, AuditRange>) -> Result<Vec<AuditEntry>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| Box::pin(list(connection, query)))
            .await
    }

    async fn entries(&self, ids: Vec<AuditId>) -> Result<Vec<AuditEntry>, StoreError> {
        self.read(ids, |connection, ids| Box::pin(entries(connection, ids))).await
    }

    async fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Result<Vec<UnsealedEntry>, StoreError> {
        self.read((after, limit), |connection, (after, limit)| Box::pin(unsealed(connection, after.as_deref(), *limit)))
            .await
    }

    async fn newest_checkpoint(&self) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.read((), |connection, ()| Box::pin(newest(connection))).await
    }

    async fn checkpoints(&self, after: i64, limit: usize) -> Result<Vec<StoredCheckpoint>, StoreError> {
        self.read((after, limit), |connection, (after, limit)| Box::pin(checkpoints(connection, *after, *limit))).await
    }

    async fn add_checkpoint(&self, sealed: SealedCheckpoint) -> Result<bool, StoreError> {
        self.write(sealed, |connection, sealed| Box::pin(add(connection, sealed))).await
    }

    async fn cut_audit(&self, command: CutAudit) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(cut(connection, command))).await
    }

    async fn take_delivery(&self, delivery: Delivery) -> Result<Option<DeliveryPosition>, StoreError> {
        self.write(delivery, |connection, delivery| Box::pin(take_delivery(connection, delivery))).await
    }

    async fn note_delivered(&self, holder: Uuid, from: i64, to: DeliveryPosition) -> Result<bool, StoreError> {
        self.write((holder, from, to), |connection, (holder, from, to)| {
            Box::pin(note_delivered(connection, *holder, *from, to))
        })
        .await
    }

    async fn delivery(&self) -> Result<Option<DeliveryState>, StoreError> {
        self.read((), |connection, ()| Box::pin(delivery(connection))).await
    }
}

/// An entry's columns, in the order of the macro.
#[derive(Queryable)]
struct EntryRow {
    id: AnyId,
    at: i64,
    organization: AnyId,
    actor: String,
    account: Option<AnyId>,
    session: Option<AnyId>,
    integration: Option<AnyId>,
    action: String,
    subject: String,
    count: i64,
    namespace: Option<String>,
    purpose: Option<String>,
    network: Option<String>,
    credentials: Option<String>,
    request: Option<String>,
    rows: Option<String>,
    changes: Option<String>,
    key: AnyId,
    code: Vec<u8>,
    checkpoint: Option<i64>,
}

macro_rules! entry_columns {
    () => {
        (
            audit::id,
            audit::at,
            audit::organization_id,
            audit::actor,
            audit::account_id,
            audit::session_id,
            audit::integration_id,
            audit::action,
            audit::subject,
            audit::count,
            audit::namespace,
            audit::purpose,
            audit::network,
            audit::credentials,
            audit::request_id,
            audit::changed_rows,
            audit::changes,
            audit::key_id,
            audit::code,
            audit::checkpoint,
        )
    };
}

impl From<EntryRow> for AuditEntry {
    fn from(row: EntryRow) -> Self {
        Self {
            id: row.id.to_string(),
            at: Timestamp::from_millis(row.at),
            organization: (row.organization != OF_INSTANCE.stored().into()).then(|| row.organization.to_string()),
            actor: row.actor,
            account: row.account.map(|id| id.to_string()),
            session: row.session.map(|id| id.to_string()),
            integration: row.integration.map(|id| id.to_string()),
            action: row.action,
            subject: row.subject,
            count: row.count,
            namespace: row.namespace,
            purpose: row.purpose,
            network: row.network,
            credentials: row.credentials,
            request: row.request,
            rows: row.rows,
            changes: row.changes,
            key: row.key.to_string(),
            code: row.code,
            checkpoint: row.checkpoint,
        }
    }
}

async fn list(connection: &mut Connection, query: &List<String, AuditRange>) -> Result<Vec<AuditEntry>, Failure> {
    let AuditRange { scope, from, until, order } = query.of;
    if !query.principal.may_see(scope) {
        return Err(Denial::InsufficientRole.into());
    }
    authorize(&connection.tx(), &query.principal, query.now).await?;
    let from = from.map(|id| AnyId::from(id.stored())).unwrap_or_default();
    let until = until.map(|id| AnyId::from(id.stored()));
    let after = query.after.as_deref().map(AnyId::from_text);
    let own = |organization: OrganizationId| {
        let own = audit::table.filter(audit::organization_id.eq(organization.stored()));
        own.filter(audit::checkpoint.is_not_null())
    };
    let mut rows: Vec<EntryRow> = match order {
        AuditOrder::OldestFirst => {
            // Without an end in the query: nothing that stands in the table is left out, whatever its id.
            let rows = audit::id.ge(after.map(next_id).unwrap_or_default().max(from));
            match scope {
                Scope::All => {
                    let all = audit::table.filter(rows).order(audit::id).select(entry_columns!());
                    load_page!(all, connection, query.limit).await?
                }
                Scope::One(organization) => {
                    let own = own(organization).filter(rows).order(audit::id).select(entry_columns!());
                    load_page!(own, connection, query.limit).await?
                }
            }
        }
        AuditOrder::NewestFirst => {
            let ends = [until.clone(), after];
            let end = ends.into_iter().flatten().min().unwrap_or_else(|| AFTER_ALL_IDS.into());
            let rows = audit::id.ge(from).and(audit::id.lt(end));
            match scope {
                Scope::All => {
                    let all = audit::table.filter(rows).order(audit::id.desc()).select(entry_columns!());
                    load_page!(all, connection, query.limit).await?
                }
                Scope::One(organization) => {
                    let own = own(organization).filter(rows).order(audit::id.desc()).select(entry_columns!());
                    load_page!(own, connection, query.limit).await?
                }
            }
        }
    };
    if let Some(until) = until {
        rows.retain(|row| row.id < until);
    }
    Ok(rows.into_iter().map(AuditEntry::from).collect())
}

async fn entries(connection: &mut Connection, ids: &[AuditId]) -> Result<Vec<AuditEntry>, Failure> {
    let mut found = Vec::with_capacity(ids.len());
    for ids in ids.chunks(LARGEST_LIST) {
        let rows: Vec<EntryRow> = audit::table
            .filter(audit::id.eq_any(ids.iter().map(|id| id.stored())))
            .order(audit::id)
            .select(entry_columns!())
            .load(connection)
            .await?;
        found.extend(rows.into_iter().map(AuditEntry::from));
    }
    Ok(found)
}

/// The newest entries that say what was left of a row, newest first.
pub(super) async fn recorded_states(
    connection: &mut Connection,
    query: &RecordedStates,
) -> Result<Vec<AuditEntry>, Failure> {
    let namespace = query.namespace.as_ref().map(Namespace::as_str);
    let rows = audit::table
        .filter(audit::subject.eq(query.subject.text()))
        .filter(audit::organization_id.eq(query.organization.stored()))
        .filter(audit::namespace.eq(namespace).or(namespace.is_none().into_sql::<Bool>()))
        // No name of a row ends with that of another.
        .filter(audit::changed_rows.like(format!("%{} %", query.row.as_str())))
        .filter(audit::changed_rows.is_not_null())
        .order(audit::id.desc())
        .select(entry_columns!());
    let limit = query.limit;
    let rows: Vec<EntryRow> = load_page!(rows, connection, limit).await?;
    Ok(rows.into_iter().map(AuditEntry::from).collect())
}

async fn unsealed(
    connection: &mut Connection,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<UnsealedEntry>, Failure> {
    let rows = audit::table
        .filter(audit::checkpoint.is_null())
        .filter(audit::id.ge(after.map(AnyId::from_text).map(next_id).unwrap_or_default()))
        .order(audit::id)
        .select((audit::id, audit::code));
    let rows: Vec<(AnyId, Vec<u8>)> = load_page!(rows, connection, limit).await?;
    Ok(rows.into_iter().map(|(id, code)| UnsealedEntry { id: id.to_string(), code }).collect())
}

type CheckpointRow = (i64, i64, Vec<u8>, Vec<u8>, AnyId, Vec<u8>);

macro_rules! checkpoint_columns {
    () => {
        (
            audit_checkpoints::number,
            audit_checkpoints::at,
            audit_checkpoints::entries,
            audit_checkpoints::hash,
            audit_checkpoints::key_id,
            audit_checkpoints::code,
        )
    };
}

fn checkpoint((number, at, entries, hash, key, code): CheckpointRow) -> StoredCheckpoint {
    let digest = |bytes: Vec<u8>| bytes.try_into().ok().map(Digest::from_bytes);
    let sealed = || {
        let ids = entries.chunks(16).map(|bytes| bytes.try_into().ok().map(AuditId::from_bytes));
        let (entries, at) = (ids.collect::<Option<_>>()?, Timestamp::from_millis(at));
        let checkpoint = Checkpoint { number, at, entries, hash: digest(hash)? };
        Some(SealedCheckpoint { checkpoint, key: key.decode("audit_checkpoints").ok()?, code: digest(code)? })
    };
    StoredCheckpoint { number, sealed: sealed() }
}

async fn newest(connection: &mut Connection) -> Result<Option<StoredCheckpoint>, Failure> {
    let newest = audit_checkpoints::table.order(audit_checkpoints::number.desc()).select(checkpoint_columns!());
    let rows: Vec<CheckpointRow> = load_page!(newest, connection, 1_usize).await?;
    Ok(rows.into_iter().next().map(checkpoint))
}

async fn checkpoints(connection: &mut Connection, after: i64, limit: usize) -> Result<Vec<StoredCheckpoint>, Failure> {
    let rows = audit_checkpoints::table
        .filter(audit_checkpoints::number.gt(after))
        .order(audit_checkpoints::number)
        .select(checkpoint_columns!());
    let rows: Vec<CheckpointRow> = load_page!(rows, connection, limit).await?;
    Ok(rows.into_iter().map(checkpoint).collect())
}

async fn add(connection: &mut Connection, sealed: &SealedCheckpoint) -> Decided<bool> {
    let SealedCheckpoint { checkpoint, key, code } = sealed;
    if checkpoint.number > 1 {
        let before: Option<i64> = audit_checkpoints::table
            .filter(audit_checkpoints::number.eq(checkpoint.number - 1))
            .select(audit_checkpoints::number)
            .get_result(connection)
            .await
            .optional()?;
        if before.is_none() {
            return Ok(Verdict::Refused(false));
        }
    }
    let entries: Vec<u8> = checkpoint.entries.iter().flat_map(|id| *id.as_bytes()).collect();
    let added = diesel::insert_into(audit_checkpoints::table)
        .values((
            audit_checkpoints::number.eq(checkpoint.number),
            audit_checkpoints::at.eq(checkpoint.at.as_millis()),
            audit_checkpoints::entries.eq(entries),
            audit_checkpoints::hash.eq(checkpoint.hash.as_bytes().as_slice()),
            audit_checkpoints::key_id.eq(key.stored()),
            audit_checkpoints::code.eq(code.as_bytes().as_slice()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if added == 0 {
        return Ok(Verdict::Refused(false));
    }
    let ids = &checkpoint.entries;
    let mut noted = 0;
    for ids in ids.chunks(LARGEST_LIST) {
        noted += update(
            audit::table.filter(audit::id.eq_any(ids.iter().map(|id| id.stored()))).filter(audit::checkpoint.is_null()),
        )
        .set(audit::checkpoint.eq(checkpoint.number))
        .execute(connection)
        .await?;
    }
    Ok(if noted == ids.len() { Verdict::Recorded(true) } else { Verdict::Undo(false) })
}

/// Removes slice after slice what one checkpoint may hold at most.
async fn cut(connection: &mut Connection, command: &CutAudit) -> Decided<bool> {
    let SealedCheckpoint { checkpoint, key, code } = &command.start;
    let first = audit_checkpoints::table.order(audit_checkpoints::number).select(audit_checkpoints::number);
    let first: Vec<i64> = load_page!(first, connection, 1_usize).await?;
    if first != [command.first] {
        return Ok(Verdict::Refused(false));
    }
    let row = audit_checkpoints::table
        .filter(audit_checkpoints::number.eq(checkpoint.number))
        .filter(audit_checkpoints::hash.eq(checkpoint.hash.as_bytes().as_slice()));
    let emptied = update(row)
        .set((
            audit_checkpoints::entries.eq(Vec::new()),
            audit_checkpoints::key_id.eq(key.stored()),
            audit_checkpoints::code.eq(code.as_bytes().as_slice()),
        ))
        .execute(connection)
        .await?;
    if emptied == 0 {
        return Ok(Verdict::Refused(false));
    }
    diesel::delete(audit_checkpoints::table.filter(audit_checkpoints::number.lt(checkpoint.number)))
        .execute(connection)
        .await?;
    let ids: Vec<_> = command.entries.iter().map(|id| id.stored()).collect();
    for ids in ids.chunks(LARGEST_LIST) {
        diesel::delete(audit::table.filter(audit::id.eq_any(ids))).execute(connection).await?;
    }
    record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(true))
}

/// The key of the one row of `audit_delivery`.
const SINGLETON: i64 = 1;

async fn take_delivery(connection: &mut Connection, command: &Delivery) -> Decided<Option<DeliveryPosition>> {
    let Delivery { holder, now, until, first } = command;
    diesel::insert_into(audit_delivery::table)
        .values((
            audit_delivery::singleton.eq(SINGLETON),
            audit_delivery::checkpoint.eq(first.checkpoint),
            audit_delivery::key_id.eq(AnyId::from_text(&first.key)),
            audit_delivery::code.eq(&first.code),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    let holder = holder.hyphenated().to_string();
    let free = audit_delivery::holder
        .is_null()
        .or(audit_delivery::holder.eq(holder.clone()))
        .or(audit_delivery::until.is_null())
        .or(audit_delivery::until.le(now.as_millis()))
        .or(audit_delivery::until.gt(now.plus_seconds(Delivery::LONGEST_SECONDS).as_millis()));
    let taken = update(audit_delivery::table.filter(audit_delivery::singleton.eq(SINGLETON)).filter(free))
        .set((audit_delivery::holder.eq(holder), audit_delivery::until.eq(until.as_millis())))
        .execute(connection)
        .await?;
    if taken == 0 {
        return Ok(Verdict::Refused(None));
    }
    Ok(Verdict::Recorded(delivery(connection).await?.map(|state| state.position)))
}

async fn note_delivered(connection: &mut Connection, holder: Uuid, from: i64, to: &DeliveryPosition) -> Decided<bool> {
    let row = audit_delivery::table
        .filter(audit_delivery::singleton.eq(SINGLETON))
        .filter(audit_delivery::holder.eq(holder.hyphenated().to_string()))
        .filter(audit_delivery::checkpoint.eq(from));
    let noted = update(row)
        .set((
            audit_delivery::checkpoint.eq(to.checkpoint),
            audit_delivery::key_id.eq(AnyId::from_text(&to.key)),
            audit_delivery::code.eq(&to.code),
        ))
        .execute(connection)
        .await?;
    Ok(if noted == 1 { Verdict::Recorded(true) } else { Verdict::Refused(false) })
}

async fn delivery(connection: &mut Connection) -> Result<Option<DeliveryState>, Failure> {
    let columns = (audit_delivery::checkpoint, audit_delivery::key_id, audit_delivery::code, audit_delivery::until);
    let row: Option<(i64, AnyId, Vec<u8>, Option<i64>)> = audit_delivery::table
        .filter(audit_delivery::singleton.eq(SINGLETON))
        .select(columns)
        .get_result(connection)
        .await
        .optional()?;
    Ok(row.map(|(checkpoint, key, code, until)| DeliveryState {
        position: DeliveryPosition { checkpoint, key: key.to_string(), code },
        until: until.map(Timestamp::from_millis),
    }))
}
