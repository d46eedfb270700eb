//! Reading entries.

use super::LARGEST_LIST;
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::new_row::OF_INSTANCE;
use crate::schema::audit;
use crate::stored::{AFTER_ALL_IDS, AnyId, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
    TextExpressionMethods as _,
};
use vault_core::audit::{AuditEntry, RowState, UnsealedEntry};
use vault_core::id::AuditId;
use vault_core::port::{AuditOrder, AuditRange, RecordedStates, RecordedSubject};
use vault_core::principal::Scope;
use vault_core::time::Timestamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = audit, check_for_backend(Db))]
struct EntryRow {
    id: AnyId,
    at: i64,
    organization_id: AnyId,
    actor: String,
    account_id: Option<AnyId>,
    session_id: Option<AnyId>,
    integration_id: Option<AnyId>,
    action: String,
    subject: String,
    count: i64,
    namespace: Option<String>,
    purpose: Option<String>,
    network: Option<String>,
    credentials: Option<String>,
    request_id: Option<String>,
    changed_rows: Option<String>,
    changes: Option<String>,
    key_id: AnyId,
    code: Vec<u8>,
    checkpoint: Option<i64>,
}

impl From<EntryRow> for AuditEntry {
    fn from(row: EntryRow) -> Self {
        let of_organization = row.organization_id != OF_INSTANCE.stored().into();
        Self {
            id: row.id.to_string(),
            at: Timestamp::from_millis(row.at),
            organization: of_organization.then(|| row.organization_id.to_string()),
            actor: row.actor,
            account: row.account_id.map(String::from),
            session: row.session_id.map(String::from),
            integration: row.integration_id.map(String::from),
            action: row.action,
            subject: row.subject,
            count: row.count,
            namespace: row.namespace,
            purpose: row.purpose,
            network: row.network,
            credentials: row.credentials,
            request: row.request_id,
            rows: row.changed_rows,
            changes: row.changes,
            key: row.key_id.to_string(),
            mac: row.code,
            checkpoint: row.checkpoint,
        }
    }
}

/// Reads entries of a range.
pub(crate) async fn read(
    tx: &Tx<'_>,
    AuditRange { scope, from, until, order }: AuditRange,
    after: Option<String>,
    limit: usize,
) -> Result<Vec<AuditEntry>, Failure> {
    let from = from.map(|id| AnyId::from(id.stored())).unwrap_or_default();
    let until = until.map(|id| AnyId::from(id.stored()));
    let after = after.as_deref().map(AnyId::from_text);
    let mut entries = audit::table.select(EntryRow::as_select()).into_boxed::<Db>();
    if let Scope::One(organization) = scope {
        let own = audit::organization_id.eq(organization.stored());
        entries = entries.filter(own).filter(audit::checkpoint.is_not_null());
    }
    let entries = match order {
        // Without an end in the query, so that no stored entry is left out, whatever its id.
        AuditOrder::OldestFirst => {
            let from = after.map(|id| tx.next_id(id)).unwrap_or_default().max(from);
            entries.filter(audit::id.ge(from)).order(audit::id.asc())
        }
        AuditOrder::NewestFirst => {
            let end = [until.clone(), after].into_iter().flatten().min().unwrap_or_else(|| AFTER_ALL_IDS.into());
            entries.filter(audit::id.ge(from).and(audit::id.lt(end))).order(audit::id.desc())
        }
    };
    let mut rows: Vec<EntryRow> = tx.page(entries, limit).await?;
    if let Some(until) = until {
        rows.retain(|row| row.id < until);
    }
    Ok(rows.into_iter().map(AuditEntry::from).collect())
}

/// Reads the entries that exist of some IDs, which are read in chunks in ascending order of the IDs.
pub(crate) async fn find(tx: &Tx<'_>, ids: &[AuditId]) -> Result<Vec<AuditEntry>, Failure> {
    let mut found = Vec::with_capacity(ids.len());
    for ids in ids.chunks(LARGEST_LIST) {
        let ids = audit::id.eq_any(ids.iter().map(|id| id.stored()));
        let rows = tx.load(audit::table.filter(ids).order(audit::id).select(EntryRow::as_select())).await?;
        found.extend(rows.into_iter().map(AuditEntry::from));
    }
    Ok(found)
}

/// The entries about a subject that contain the state of a row, newest first.
#[auto_type]
fn about(subject: String, organization: IdBytes, row: String) -> _ {
    audit::table
        .filter(audit::subject.eq(subject))
        .filter(audit::organization_id.eq(organization))
        .filter(audit::changed_rows.like(row))
        .filter(audit::changed_rows.is_not_null())
        .order(audit::id.desc())
}

fn about_row(query: &RecordedStates) -> about {
    // No row's name ends with the name of another.
    about(query.subject.text(), query.organization.stored(), format!("%{} %", query.row.as_str()))
}

/// Reads the newest entries that contain the state of a row, newest first.
pub(crate) async fn recorded(tx: &Tx<'_>, query: &RecordedStates) -> Result<Vec<AuditEntry>, Failure> {
    let entries = about_row(query).select(EntryRow::as_select());
    let rows = match &query.namespace {
        None => tx.page(entries, query.limit).await?,
        Some(namespace) => tx.page(entries.filter(audit::namespace.eq(namespace.as_str())), query.limit).await?,
    };
    Ok(rows.into_iter().map(AuditEntry::from).collect())
}

/// Reads the states alone.
pub(crate) async fn states(tx: &Tx<'_>, query: &RecordedStates) -> Result<Vec<RowState>, Failure> {
    let states = about_row(query).select(audit::changed_rows);
    let rows: Vec<Option<String>> = match &query.namespace {
        None => tx.page(states, query.limit).await?,
        Some(namespace) => tx.page(states.filter(audit::namespace.eq(namespace.as_str())), query.limit).await?,
    };
    Ok(rows.iter().flatten().filter_map(|text| RowState::of(query.row, text)).collect())
}

/// Reads the entries that contain the state of a row, ordered by subject and ID.
pub(crate) async fn recorded_subjects(
    tx: &Tx<'_>,
    after: Option<RecordedSubject>,
    limit: usize,
) -> Result<Vec<RecordedSubject>, Failure> {
    let (subject, entry) = match &after {
        Some(after) => (after.subject.as_str(), tx.next_id(AnyId::from_text(&after.entry))),
        None => ("", AnyId::default()),
    };
    let entries = audit::table
        .filter(audit::changed_rows.is_not_null())
        .filter(audit::subject.ge(subject))
        .filter(audit::subject.gt(subject).or(audit::id.ge(entry)))
        .order((audit::subject, audit::id))
        .select((audit::subject, audit::id, audit::organization_id));
    let rows: Vec<(String, AnyId, AnyId)> = tx.page(entries, limit).await?;
    let named = |(subject, entry, organization): (_, AnyId, AnyId)| RecordedSubject {
        subject,
        entry: entry.to_string(),
        organization: organization.to_string(),
    };
    Ok(rows.into_iter().map(named).collect())
}

/// Reads entries that no checkpoint contains, after an ID.
pub(crate) async fn unsealed(tx: &Tx<'_>, after: Option<String>, limit: usize) -> Result<Vec<UnsealedEntry>, Failure> {
    let from = after.map(|after| tx.next_id(AnyId::from_text(&after)));
    let entries = audit::table
        .filter(audit::checkpoint.is_null())
        .filter(audit::id.ge(from.unwrap_or_default()))
        .order(audit::id)
        .select((audit::id, audit::code));
    let rows: Vec<(AnyId, Vec<u8>)> = tx.page(entries, limit).await?;
    Ok(rows.into_iter().map(|(id, mac)| UnsealedEntry { id: id.to_string(), mac }).collect())
}
