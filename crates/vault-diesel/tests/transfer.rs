//! Copies of the embedded database to PostgreSQL: every table and every value, completely or not at all.

use crate::support;

use rusqlite::types::Value;
use secrecy::SecretString;
use std::collections::BTreeSet;
use std::sync::Arc;
use support::NOW;
use support::postgres::{query, store};
use support::sqlite::Scratch;
use vault_diesel::{PostgresSettings, SqliteStore, Transfer, TransferError, Transferred};
use vault_testkit::postgres::Cluster;

const INSTANCE: &str = "01010101-0101-0101-0101-010101010101";

fn database() -> String {
    Cluster::shared().create_database()
}

async fn prepare(address: &str) -> Result<Transfer, TransferError> {
    Transfer::prepare(&PostgresSettings::new(SecretString::from(address)), INSTANCE).await
}

/// A finished transfer with the store that it read.
struct Moved(Transferred, Arc<SqliteStore>);

impl Moved {
    async fn release(self) {
        self.0.release().await;
        self.1.close().await;
    }
}

/// Copies the rows of `scratch` to the database at `address`.
async fn run(scratch: &Scratch, address: &str, rehearsal: bool) -> Result<Moved, TransferError> {
    let transfer = prepare(address).await?;
    let store = scratch.open();
    match transfer.run(&store, rehearsal, &mut |_| {}).await {
        Ok(transferred) => Ok(Moved(transferred, store)),
        Err(error) => {
            store.close().await;
            Err(error)
        }
    }
}

fn names(connection: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn tables(connection: &rusqlite::Connection) -> Vec<String> {
    names(connection, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
}

/// Creates a database with three rows in each table that can have them. The values of a row are the same in all tables,
/// so that every reference is valid.
async fn filled() -> Scratch {
    let scratch = Scratch::new();
    scratch.migrated().await.close().await;
    let connection = scratch.bare();
    let made_by_migrations = "PRAGMA foreign_keys = OFF; DELETE FROM account_logins; DELETE FROM attempt_classes; DELETE FROM schema_versions";
    connection.execute_batch(made_by_migrations).unwrap();
    for table in tables(&connection) {
        let mut statement = connection.prepare("SELECT type, \"notnull\" FROM pragma_table_info(?)").unwrap();
        let columns = statement.query_map([&table], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)));
        let columns: Vec<(String, bool)> = columns.unwrap().map(Result::unwrap).collect();
        for row in 1..=3_u8 {
            if table == "instance" && row > 1 {
                continue;
            }
            let value = |(kind, required): &(String, bool)| match kind.as_str() {
                _ if !required && row == 2 => Value::Null,
                "TEXT" if row == 3 => Value::Text("ü\u{1F511}".to_owned()),
                "TEXT" => Value::Text(format!("v{row}")),
                "BIGINT" if row == 3 => Value::Integer(i64::MIN),
                "BIGINT" => Value::Integer(row.into()),
                "UUID" => Value::Blob(vec![row; 16]),
                "BLOB" => Value::Blob(vec![0; usize::from(row) - 1]),
                other => panic!("{table} has a column of type {other}"),
            };
            let places = vec!["?"; columns.len()].join(", ");
            let insert = format!("INSERT INTO {table} VALUES ({places})");
            connection.execute(&insert, rusqlite::params_from_iter(columns.iter().map(value))).unwrap();
        }
    }
    // The versions are those of this build.
    connection.execute("DELETE FROM schema_versions", []).unwrap();
    for migration in vault_diesel::MIGRATIONS {
        connection.execute("INSERT INTO schema_versions VALUES (?, 7)", [migration.version]).unwrap();
    }
    scratch
}

/// Reads the rows of `table` as text, independently of the transfer.
fn rows_on_sqlite(connection: &rusqlite::Connection, table: &str) -> BTreeSet<String> {
    let columns = names(connection, &format!("SELECT name FROM pragma_table_info('{table}') ORDER BY name"));
    let text = |c: &String| {
        format!("CASE typeof(\"{c}\") WHEN 'blob' THEN hex(\"{c}\") WHEN 'null' THEN '-' ELSE \"{c}\" END")
    };
    let texts: Vec<_> = columns.iter().map(text).collect();
    names(connection, &format!("SELECT {} FROM {table}", texts.join(" || ',' || "))).into_iter().collect()
}

fn rows_on_postgres(address: &str, connection: &rusqlite::Connection, table: &str) -> BTreeSet<String> {
    let columns = names(connection, &format!("SELECT name FROM pragma_table_info('{table}') ORDER BY name"));
    let blobs = names(connection, &format!("SELECT name FROM pragma_table_info('{table}') WHERE type = 'BLOB'"));
    let ids = names(connection, &format!("SELECT name FROM pragma_table_info('{table}') WHERE type = 'UUID'"));
    let text = |c: &String| match (blobs.contains(c), ids.contains(c)) {
        (true, _) => format!("coalesce(upper(encode(\"{c}\", 'hex')), '-')"),
        (_, true) => format!("coalesce(upper(replace(\"{c}\"::text, '-', '')), '-')"),
        _ => format!("coalesce(\"{c}\"::text, '-')"),
    };
    let texts: Vec<_> = columns.iter().map(text).collect();
    let found = query(address, &format!("SELECT {} FROM {table}", texts.join(" || ',' || ")));
    found.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_every_table_is_copied() {
    let (scratch, address) = (filled().await, database());
    let moved = run(&scratch, &address, false).await.unwrap();
    let connection = scratch.bare();
    let expected = tables(&connection);
    let mut copied: Vec<String> = moved.0.tables.iter().map(|table| table.name.clone()).collect();
    copied.sort();
    assert_eq!(copied, expected, "every table of the embedded database");
    let there =
        query(&address, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename COLLATE \"C\"");
    assert_eq!(there.lines().collect::<Vec<_>>(), expected, "every table of the target");
    for table in &expected {
        let rows = rows_on_sqlite(&connection, table);
        assert!(!rows.is_empty(), "{table} is empty, so this shows nothing of it");
        assert_eq!(rows_on_postgres(&address, &connection, table), rows, "{table}");
    }
    assert!(moved.0.tables.iter().all(|table| table.rows > 0));
    moved.release().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_database_is_locked_until_released() {
    let (scratch, address) = (filled().await, database());
    let connection = scratch.bare();
    connection.execute_batch("PRAGMA busy_timeout = 0").unwrap();
    let moved = run(&scratch, &address, false).await.unwrap();
    assert!(connection.execute_batch("BEGIN IMMEDIATE").unwrap_err().to_string().contains("locked"));
    assert!(names(&connection, "SELECT hex(id) FROM organizations").len() > 1, "it can be read");
    moved.release().await;
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();

    // A rehearsal does not block writers and leaves nothing in the target.
    let address = database();
    let moved = run(&scratch, &address, true).await.unwrap();
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    moved.release().await;
    assert_eq!(query(&address, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_copy_is_compared() {
    let (scratch, address) = (filled().await, database());
    run(&scratch, &address, false).await.unwrap().release().await;
    let first = query(&address, "SELECT xmin FROM organizations");
    assert!(prepare(&address).await.unwrap().is_complete());
    run(&scratch, &address, false).await.unwrap().release().await;
    assert_eq!(query(&address, "SELECT xmin FROM organizations"), first, "nothing was written again");
    query(&address, "UPDATE organizations SET key_uses = 7 WHERE id = '01010101-0101-0101-0101-010101010101'");
    let error = run(&scratch, &address, false).await.map(drop).unwrap_err();
    assert!(matches!(&error, TransferError::Differs { table } if table == "organizations"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_changed_by_target_are_detected_and_rolled_back() {
    let (scratch, address) = (filled().await, database());
    let target = store(&address).await;
    target.migrate(NOW, &mut |_| {}).await.unwrap();
    query(
        &address,
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.key_uses := 7; RETURN NEW; END'; \
         CREATE TRIGGER spoil BEFORE INSERT ON organizations FOR EACH ROW EXECUTE FUNCTION spoil()",
    );
    let error = run(&scratch, &address, false).await.map(drop).unwrap_err();
    assert!(matches!(&error, TransferError::Unfaithful(table) if table == "organizations"), "{error:?}");
    assert_eq!(query(&address, "SELECT count(*) FROM organizations"), "0");
    query(&address, "DROP TRIGGER spoil ON organizations");
    run(&scratch, &address, false).await.unwrap().release().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_one_database_lacks_are_refused() {
    let (scratch, address) = (filled().await, database());
    scratch.bare().execute_batch("CREATE TABLE later (id TEXT NOT NULL PRIMARY KEY)").unwrap();
    let error = run(&scratch, &address, false).await.map(drop).unwrap_err();
    assert!(matches!(&error, TransferError::Tables(table) if table == "later"), "{error:?}");

    let (scratch, address) = (filled().await, database());
    store(&address).await.migrate(NOW, &mut |_| {}).await.unwrap();
    query(&address, "ALTER TABLE sessions ADD COLUMN later bigint");
    let error = run(&scratch, &address, false).await.map(drop).unwrap_err();
    assert!(matches!(&error, TransferError::Tables(table) if table == "sessions"), "{error:?}");
    query(&address, "ALTER TABLE sessions DROP COLUMN later; INSERT INTO erasures VALUES (gen_random_uuid())");
    let error = run(&scratch, &address, false).await.map(drop).unwrap_err();
    assert!(matches!(&error, TransferError::NotEmpty(what) if what.contains("erasures")), "{error:?}");
}
