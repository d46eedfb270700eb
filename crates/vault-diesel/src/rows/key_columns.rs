//! The columns that name keys of the instance, and statements about the rows that need a key.
//!
//! A blob names the key that sealed it, and a MAC of the audit log has a column for its key. Keys of tokens and lookups are not named: a row may
//! need one until some time after the key was replaced. No column has an index, because a deployment has few such rows and a
//! rotation reads each once.

use crate::db::Parts;
use crate::schema::{audit, audit_checkpoints, audit_delivery, entities, event_deliveries, idempotency_keys, sessions};
use crate::stored::StoredId as _;
use diesel::Column;
use diesel::sql_types::{BigInt, Bool};
use vault_core::id::KeyId;
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::time::Timestamp;
use {KeyPurpose::*, Named::*};

/// How a column names the key that its row needs.
#[derive(Clone, Copy, Debug)]
enum Named {
    /// A blob: version, algorithm, then the id of the key.
    InBlob,
    /// The id of the key.
    ById,
    /// A time in milliseconds: the row may need each key that was not replaced long before.
    ByMillis,
    /// Likewise in microseconds.
    ByMicros,
}

/// A column that names a key.
#[derive(Debug)]
struct KeyColumn {
    purpose: KeyPurpose,
    table: &'static str,
    name: &'static str,
    named: Named,
}

/// All columns that name keys of the instance. Those of a table follow each other.
const COLUMNS: [KeyColumn; 7] = [
    of(Instance, "entities", entities::sealed, InBlob),
    of(Audit, "audit", audit::key_id, ById),
    of(Audit, "audit_checkpoints", audit_checkpoints::key_id, ById),
    of(Audit, "audit_delivery", audit_delivery::key_id, ById),
    of(Token, "sessions", sessions::created_at, ByMillis),
    of(Lookup, "event_deliveries", event_deliveries::position, ByMicros),
    of(Lookup, "idempotency_keys", idempotency_keys::created_at, ByMillis),
];

const fn of<C: Column + Copy>(purpose: KeyPurpose, table: &'static str, _: C, named: Named) -> KeyColumn {
    KeyColumn { purpose, table, name: C::NAME, named }
}

/// The columns of each table.
fn tables() -> impl Iterator<Item = &'static [KeyColumn]> {
    COLUMNS.chunk_by(|one, other| one.table == other.table)
}

/// Appends the condition that a row needs a key, which was replaced at a time.
fn needing<'a, ST>(
    statement: Parts<'a, ST>,
    columns: &'static [KeyColumn],
    key: &'a KeyId,
    replaced_at: Timestamp,
) -> Parts<'a, ST> {
    let until = replaced_at.plus_seconds(KeyringEntry::DRAINED_SECONDS).as_millis();
    statement.each(columns, " OR ", |statement, column| match column.named {
        InBlob => statement.text("substr(").name(column.name).text(", 3, 16) = ").bytes(key.as_bytes()),
        ById => statement.name(column.name).text(" = ").id(key.stored()),
        ByMillis => statement.name(column.name).text(" <= ").number(until),
        ByMicros => statement.name(column.name).text(" <= ").number(until.saturating_mul(1_000)),
    })
}

/// Appends the rows that need a key of the instance.
fn from<'a, ST>(statement: Parts<'a, ST>, columns: &'static [KeyColumn], entry: &'a KeyringEntry) -> Parts<'a, ST> {
    let table = columns.first().map_or("", |column| column.table);
    needing(statement.text(" FROM ").name(table).text(" WHERE "), columns, &entry.id, entry.since)
}

/// The tables with rows that may need a key.
fn tables_of(entry: &KeyringEntry) -> impl Iterator<Item = &'static [KeyColumn]> {
    tables().filter(|columns| columns.iter().all(|column| column.purpose == entry.purpose))
}

/// Counts the rows that need a key, one statement for each table.
pub(crate) fn counts(entry: &KeyringEntry) -> impl Iterator<Item = Parts<'_, BigInt>> {
    tables_of(entry).map(|columns| from(Parts::new("SELECT count(*)"), columns, entry))
}

/// Returns whether rows need a key. One statement: two could miss what a transaction moves from the table of the second to that
/// of the first.
pub(crate) fn is_needed(entry: &KeyringEntry) -> Parts<'_, Bool> {
    Parts::new("SELECT ").each(tables_of(entry), " OR ", |statement, columns| {
        from(statement.text("EXISTS (SELECT 1"), columns, entry).text(")")
    })
}
