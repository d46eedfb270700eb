//! Access to the rows of a closed vault, past the service.

use super::{Case, Gone};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::path::Path;
use uuid::Uuid;
use vault_core::entity::Index;
use vault_crypto::{DatabaseKeyFile, LoadedRootKey, OsEntropy};

/// Tables with the parts of an object. Each row names it in one of these columns.
const PARTS: [(&str, &str); 11] = [
    ("entities", "id"),
    ("organizations", "id"),
    ("lookups", "id"),
    ("global_lookups", "id"),
    ("credentials", "id"),
    ("credential_secrets", "id"),
    ("credential_labels", "id"),
    ("sessions", "account_id"),
    ("recovery_codes", "account_id"),
    ("account_logins", "account_id"),
    ("attempt_classes", "account_id"),
];

/// Returns an ID as a value in SQL.
pub(super) fn sql(id: &Uuid) -> String {
    format!("X'{}'", id.simple())
}

/// The database of a vault that no process has open. An earlier state of it is attached as `old`.
pub(super) struct Rows(Connection);

impl Rows {
    pub(super) fn of(directory: &Path) -> Self {
        let file = directory.join("vault.db");
        let root = LoadedRootKey::load(&directory.join("root.key"), std::sync::Arc::new(OsEntropy)).unwrap();
        let key = DatabaseKeyFile::next_to(&file).load(&root).unwrap().expose_bytes();
        let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let connection = Connection::open(&file).unwrap();
        let old = directory.join("old.db");
        connection
            .execute_batch(&format!(
                "PRAGMA key = \"x'{key}'\"; PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; \
                 ATTACH '{}' AS old KEY \"x'{key}'\"",
                old.display()
            ))
            .unwrap();
        Self(connection)
    }

    #[track_caller]
    fn run(&self, statement: &str) -> usize {
        self.0.execute(statement, []).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Returns the columns of the key of a table, and the others.
    fn columns(&self, table: &str) -> [Vec<String>; 2] {
        let read = |key: &str| {
            let query = format!("SELECT name FROM pragma_table_info('{table}') WHERE (pk > 0) = {key} ORDER BY cid");
            let mut statement = self.0.prepare(&query).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<Vec<String>, _>>().unwrap()
        };
        [read("TRUE"), read("FALSE")]
    }

    /// Returns a value of the only row of a query.
    #[track_caller]
    pub(super) fn id(&self, query: &str) -> Uuid {
        self.0.query_row(query, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// Returns the kinds of entities.
    pub(super) fn kinds(&self) -> Vec<String> {
        let mut statement = self.0.prepare("SELECT DISTINCT kind FROM entities").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Flips a bit of the content of each row. This and the other changes return whether there is something to change.
    pub(super) fn flip(&self, Case { table, rows, column, .. }: &Case) -> bool {
        let Some(column) = column else { return false };
        let [keys, _] = self.columns(table);
        let (named, given) = (keys.join(", "), keys.iter().map(|key| format!("{key} IS ?")).collect::<Vec<_>>());
        let query = format!("SELECT {column}, {named} FROM {table} WHERE {rows}");
        let mut statement = self.0.prepare(&query).unwrap();
        let read = |row: &rusqlite::Row<'_>| (0..=keys.len()).map(|nth| row.get(nth)).collect();
        let found: Vec<Vec<Value>> = statement.query_map([], read).unwrap().map(Result::unwrap).collect();
        assert!(!found.is_empty(), "no row: {query}");
        for mut values in found {
            values[0] = flipped(&values[0]);
            let update = format!("UPDATE {table} SET {column} = ? WHERE {}", given.join(" AND "));
            assert_eq!(self.0.execute(&update, params_from_iter(values)).unwrap(), 1);
        }
        true
    }

    /// Gives the row the content of another one, which gets the content of the row or is deleted.
    pub(super) fn exchange(&self, Case { table, rows, other, column, .. }: &Case, moved: bool) -> bool {
        let Some(other) = other else { return false };
        let [mut keys, mut content] = self.columns(table);
        if content.is_empty() {
            // All columns are the key, as in a set.
            content = keys.extract_if(.., |key| *column == Some(key.as_str())).collect();
        }
        let content = content.join(", ");
        // The content may be what the condition is about.
        let named: Vec<_> = keys.iter().map(|key| format!("'{key} IS ' || quote({key})")).collect();
        let [rows, other] = [rows, other].map(|rows| {
            let query = format!("SELECT {} FROM {table} WHERE {rows}", named.join(" || ' AND ' || "));
            self.0
                .query_row(&query, [], |row| row.get::<_, String>(0))
                .unwrap_or_else(|error| panic!("{query}: {error}"))
        });
        self.run(&format!("CREATE TEMP TABLE kept AS SELECT {content} FROM {table} WHERE {rows}"));
        let put = |place: &str, from: &str| {
            self.run(&format!("UPDATE {table} SET ({content}) = (SELECT {content} FROM {from}) WHERE {place}"))
        };
        assert_eq!(put(&rows, &format!("{table} WHERE {other}")), 1, "{rows}");
        let places = match moved {
            true => self.run(&format!("DELETE FROM {table} WHERE {other}")),
            false => put(&other, "kept"),
        };
        assert_eq!(places, 1, "{other}");
        true
    }

    /// Returns the conditions of the rows, of the values that lead to them, and of the parts of a credential.
    fn whole(Case { table, kind, rows, .. }: &Case) -> Vec<(&'static str, String)> {
        let mut whole = vec![(*table, rows.clone())];
        if let Some((kind, _)) = kind {
            let names: Vec<_> = Index::names_of(*kind).into_iter().map(|name| format!("'{name}'")).collect();
            let ids = format!("SELECT id FROM entities WHERE {rows} UNION SELECT id FROM old.entities WHERE {rows}");
            let leads = format!("name IN ({}) AND id IN ({ids})", names.join(", "));
            whole.extend(["lookups", "global_lookups"].map(|lookups| (lookups, leads.clone())));
        }
        if *table == "credentials" {
            whole.extend(["credential_secrets", "credential_labels"].map(|parts| (parts, rows.clone())));
        }
        whole
    }

    /// Restores the earlier state of the rows, and of the values that lead to them.
    pub(super) fn put_back(&self, case: &Case) -> bool {
        let (table, rows) = (case.table, &case.rows);
        let count = |query: String| self.0.query_row(&query, [], |row| row.get::<_, i64>(0)).unwrap();
        let of = |schema: &str| format!("SELECT * FROM {schema}.{table} WHERE {rows}");
        let differs = format!("SELECT count(*) FROM ({} EXCEPT {})", of("old"), of("main"));
        if count(differs) == 0 {
            return false;
        }
        let whole = Self::whole(case);
        let batch = whole.iter().rev().map(|(table, rows)| {
            format!("CREATE TEMP TABLE kept_{table} AS SELECT * FROM old.{table} WHERE {rows}; DELETE FROM main.{table} WHERE {rows};")
        });
        let back =
            whole.iter().map(|(table, _)| format!("INSERT OR REPLACE INTO main.{table} SELECT * FROM kept_{table};"));
        self.0.execute_batch(&batch.chain(back).collect::<String>()).unwrap();
        true
    }

    /// Deletes the rows, and the values that lead to them.
    pub(super) fn delete(&self, case: &Case) -> bool {
        let whole = Self::whole(case).into_iter().rev();
        let deleted = whole.map(|(table, rows)| self.run(&format!("DELETE FROM main.{table} WHERE {rows}")));
        deleted.last() > Some(0)
    }

    /// Restores what the service has deleted.
    pub(super) fn revive(&self, case: &Case) -> bool {
        let put = |table: &str, rows: &str| {
            self.run(&format!("INSERT OR IGNORE INTO main.{table} SELECT * FROM old.{table} WHERE {rows}"))
        };
        let revived = match &case.gone {
            None => return false,
            Some(Gone::Object(id)) => {
                PARTS.iter().map(|(table, column)| put(table, &format!("{column} = {}", sql(id)))).sum()
            }
            Some(Gone::Rows(rows)) => put(case.table, rows),
        };
        assert!(revived > 0, "nothing was deleted from {}", case.table);
        true
    }
}

fn flipped(value: &Value) -> Value {
    let last = |bytes: &[u8]| match bytes.split_last() {
        Some((last, rest)) => [rest, &[last ^ 1]].concat(),
        None => vec![b'1'],
    };
    match value {
        Value::Blob(bytes) => Value::Blob(last(bytes)),
        Value::Text(text) => Value::Text(String::from_utf8(last(text.as_bytes())).unwrap()),
        Value::Integer(number) => Value::Integer(number ^ 1),
        Value::Null => Value::Integer(1),
        other => panic!("a value without bits: {other:?}"),
    }
}
