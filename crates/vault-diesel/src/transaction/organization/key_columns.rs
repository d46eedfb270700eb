//! The columns that name keys of the instance, and statements about the rows that need a key.
//!
//! A blob names the key that sealed it, and a MAC of the audit log has a column for its key. Keys of tokens and lookups are not named: a row may
//! need one until some time after the key was replaced. No column has an index, because a deployment has few such rows and a
//! rotation reads each once.

use crate::db::Parts;
use crate::schema::{
    audit, audit_checkpoints, audit_delivery, entities, event_deliveries, idempotency_keys, organization_keys,
    organizations, sessions,
};
use crate::stored::{Id, StoredId as _, columns_of};
use diesel::Column;
use diesel::sql_types::{BigInt, Bool};
use vault_core::id::KeyId;
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{InstancePart, InstanceRow, InstanceRowKey, StoredRowKey};
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
const COLUMNS: [KeyColumn; 9] = [
    of(Instance, "organizations", organizations::fingerprint_wrapped, InBlob),
    of(Instance, "organization_keys", organization_keys::wrapped, InBlob),
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
fn from<'a, ST>(statement: Parts<'a, ST>, columns: &'static [KeyColumn], term: &'a KeyringEntry) -> Parts<'a, ST> {
    let table = columns.first().map_or("", |column| column.table);
    needing(statement.text(" FROM ").name(table).text(" WHERE "), columns, &term.id, term.since)
}

/// The tables with rows that may need a key.
fn tables_of(term: &KeyringEntry) -> impl Iterator<Item = &'static [KeyColumn]> {
    tables().filter(|columns| columns.iter().all(|column| column.purpose == term.purpose))
}

/// Counts the rows that need a key, one statement for each table.
pub(super) fn counts(term: &KeyringEntry) -> impl Iterator<Item = Parts<'_, BigInt>> {
    tables_of(term).map(|columns| from(Parts::new("SELECT count(*)"), columns, term))
}

/// Returns whether rows need a key. One statement: two could miss what a transaction moves from the table of the second to that
/// of the first.
pub(crate) fn is_needed(term: &KeyringEntry) -> Parts<'_, Bool> {
    Parts::new("SELECT ").each(tables_of(term), " OR ", |statement, columns| {
        from(statement.text("EXISTS (SELECT 1"), columns, term).text(")")
    })
}

/// The row of a part with a row key.
pub(super) fn at(part: InstancePart, place: InstanceRowKey) -> Parts<'static, Bool> {
    located(Parts::new(""), part, place)
}

fn located<ST>(statement: Parts<'_, ST>, part: InstancePart, (organization, id): InstanceRowKey) -> Parts<'_, ST> {
    let [of, own] = part.protected().key;
    let of_organization = statement.name(of).text(" = ").id(organization.stored());
    of_organization.text(" AND ").name(own).text(" = ").id(KeyId::from_uuid(id).stored())
}

/// Reads the row keys of a part after one, in their order.
pub(crate) fn places(part: InstancePart, after: &StoredRowKey) -> Parts<'static, (Id, Id)> {
    let (place, (organization, id)) = (part.protected().key, columns_of(after));
    let rows = Parts::new("SELECT ").names(place).text(" FROM ").name(part.table()).text(" WHERE (");
    let rows = rows.names(place).text(") > (").id(organization).text(", ").id(id);
    rows.text(") ORDER BY ").names(place)
}

/// Replaces what a rotation changes in a row, unless it was changed in the meantime. `None` if the rows are of different parts.
pub(crate) fn replace<'a>(before: &'a InstanceRow, after: &'a InstanceRow) -> Option<Parts<'a, ()>> {
    let part = before.part();
    let statement = Parts::new("UPDATE ").name(part.table()).text(" SET ").each(rotated(after), ", ", equal);
    let row = located(statement.text(" WHERE "), part, before.place()).text(" AND ");
    (after.part() == part).then(|| row.each(rotated(before), " AND ", equal))
}

fn equal<'a>(statement: Parts<'a, ()>, (name, value): (&'static str, Value<'a>)) -> Parts<'a, ()> {
    let statement = statement.name(name).text(" = ");
    match value {
        Value::Bytes(bytes) => statement.bytes(bytes),
        Value::Key(key) => statement.id(key.stored()),
    }
}

#[derive(Debug)]
enum Value<'a> {
    Bytes(&'a [u8]),
    Key(KeyId),
}

const fn bytes<C: Column + Copy>(_: C, value: &[u8]) -> (&'static str, Value<'_>) {
    (C::NAME, Value::Bytes(value))
}

const fn key<C: Column + Copy>(_: C, value: KeyId) -> (&'static str, Value<'static>) {
    (C::NAME, Value::Key(value))
}

/// The columns of a row that a rotation changes.
fn rotated(row: &InstanceRow) -> Vec<(&'static str, Value<'_>)> {
    match row {
        InstanceRow::Organization { keys, .. } => vec![
            key(organizations::fingerprint_key_id, keys.fingerprint_key),
            bytes(organizations::fingerprint_wrapped, keys.fingerprint_wrapped.as_bytes()),
        ],
        InstanceRow::OrganizationKey { wrapped, .. } => vec![bytes(organization_keys::wrapped, wrapped.as_bytes())],
    }
}
