//! For every column of every table, `doctor --deep` detects a value that was modified with SQL, or the documentation
//! lists the column as unchecked. For every table, it also detects exchanged, restored and deleted rows, unless they are
//! listed here.

use crate::inspection::live;
use crate::upgrade::database_key;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use vault_core::inspect::PROTECTED_TABLES;
use vault_tests::earlier::keyed;
use vault_tests::integration::{ActivationListener, Integration};
use vault_tests::issuer::TestIssuer;
use vault_tests::samples::small;
use vault_tests::{Account, Database, Session, Vault, on_both_databases};

on_both_databases! {
    every_column_is_checked_or_documented_as_unchecked,
}

/// Tables that are empty here. Other tests cover the sink's position.
const EMPTY: [&str; 3] = ["audit_delivery", "check_requests", "erasures"];

/// Change of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tampering {
    /// Two rows exchange everything but their keys.
    Exchanged,
    /// Rows have an earlier state, and removed rows exist again.
    Restored,
    /// One row does not exist.
    Deleted,
}

/// Number of rows of a table that are deleted, one at a time.
const DELETED: usize = 4;

/// A vault with a row in every other table, and those who changed it.
struct Filled {
    vault: Vault,
    admin: Session,
    colleague: Account,
    credential: String,
    removed: String,
    receiver: String,
    enrolment: String,
    _issuer: TestIssuer,
}

const PASSWORD: &str = "correct horse battery staple";

fn filled(database: Database) -> Filled {
    let (vault, activation_listener) = ActivationListener::open(database);
    let admin = vault.admin_session();
    let (colleague, credential) = live(&vault, &admin);
    let idempotent = admin.call("PATCH", "/v1/organization-vault").header("Idempotency-Key", "once");
    idempotent.json(&small("links", 1)).send().expect(201);
    let invited = admin.invite("later@example.com", "viewer").expect(201).json();
    let enrolment = invited["enrolment_code"].as_str().unwrap().to_owned();
    vault.client().enrol(&enrolment, PASSWORD).expect(200);
    let other = admin.invite("other@example.com", "viewer").expect(201).json();
    vault.client().enrol(other["enrolment_code"].as_str().unwrap(), PASSWORD).expect(200);
    let removed = admin.save(&small("exports", 6));
    let issuer = TestIssuer::start();
    for name in ["own", "other"] {
        vault.run(&["issuer", "add", name, "--issuer", &issuer.url()]).done();
    }
    let [_, daily] = ["hourly", "daily"].map(|name| Integration::make(&vault, name, &["links"]));
    daily.activate(&activation_listener.client(), "links").expect(201);
    let receivers: Vec<String> = (0..2)
        .map(|_| {
            let request = json!({"kind": "webhook", "url": "https://hooks.example"});
            let added = admin.call("POST", "/v1/receivers").json(&request).send().expect(201).json();
            added["id"].as_str().unwrap().to_owned()
        })
        .collect();
    admin.call("POST", &format!("/v1/receivers/{}/test", receivers[1])).send().expect(202);
    vault.run(&["namespace", "freeze", "exports", "--org", "Acme"]).done();
    let receiver = receivers[0].clone();
    Filled { vault, admin, colleague, credential, removed, receiver, enrolment, _issuer: issuer }
}

impl Filled {
    /// Changes and removes rows of the tables with checked columns.
    fn change(&self) {
        let Self { vault, admin, colleague, .. } = self;
        vault.run(&["account", "set-role", "--email", &colleague.email, "--role", "viewer"]).done();
        // After the change of the role, which removes a pending TOTP secret.
        let session = colleague.log_in(&vault.client());
        session.post_account("passcode", &colleague.proof()).expect(200);
        admin.replace(&self.credential, &small("imports", 5), false).expect(201);
        admin.destroy_version(&self.credential, 1).expect(204);
        admin.describe(&self.credential, &json!({"labels": {"team": "other"}})).expect(200);
        admin.delete(&self.removed).expect(204);
        vault.client().enrol(&self.enrolment, PASSWORD).expect(200);
        vault.run(&["integration", "set", "--state", "disabled", "--org", "Acme", "--name", "nightly"]).done();
        vault.run(&["integration", "delete", "--org", "Acme", "--name", "hourly", "--yes"]).done();
        vault.run(&["issuer", "remove", "own"]).done();
        admin.call("DELETE", &format!("/v1/receivers/{}", self.receiver)).send().expect(204);
        // The order of entries is uncertain within a short time.
        std::thread::sleep(std::time::Duration::from_millis(4_100));
        vault.run(&["namespace", "thaw", "exports", "--org", "Acme"]).done();
        vault.run(&["namespace", "freeze", "imports", "--org", "Acme"]).done();
        vault.run(&["key", "rotate", "--organization", "Acme"]).done();
    }
}

/// A column, its type, and whether it belongs to the key of its table.
struct Column {
    name: String,
    kind: String,
    is_key: bool,
}

/// The database with the access of an attacker.
enum Rows {
    Postgres(Runtime, Client),
    Sqlite(Connection),
}

impl Rows {
    fn of(vault: &Vault) -> Self {
        let rows = match vault.database() {
            Database::Postgres => {
                let runtime =
                    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
                let (client, connection) = runtime.block_on(tokio_postgres::connect(vault.url(), NoTls)).unwrap();
                runtime.spawn(connection);
                Self::Postgres(runtime, client)
            }
            Database::Sqlite => Self::Sqlite(keyed(&vault.data_dir().join("orgvault.db"), &database_key(vault))),
        };
        // A superuser removes the constraints.
        rows.run(match rows {
            Self::Postgres(..) => {
                "CREATE SCHEMA kept; SET session_replication_role = replica; \
                 DO $$ DECLARE one record; BEGIN FOR one IN SELECT conrelid::regclass AS of, conname AS name FROM pg_constraint \
                 WHERE contype = 'c' AND connamespace = 'public'::regnamespace LOOP \
                 EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.of, one.name); END LOOP; END $$"
            }
            Self::Sqlite(_) => {
                "ATTACH ':memory:' AS kept KEY ''; PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; \
                 PRAGMA busy_timeout = 5000"
            }
        });
        rows
    }

    #[track_caller]
    fn run(&self, statements: &str) {
        match self {
            Self::Postgres(runtime, client) => runtime.block_on(client.batch_execute(statements)).unwrap(),
            Self::Sqlite(connection) => connection.execute_batch(statements).unwrap(),
        }
    }

    #[track_caller]
    fn texts(&self, query: &str) -> Vec<Vec<String>> {
        match self {
            Self::Postgres(runtime, client) => {
                let rows = runtime.block_on(client.simple_query(query)).unwrap().into_iter();
                rows.filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => {
                        Some((0..row.len()).map(|column| row.get(column).unwrap_or_default().to_owned()).collect())
                    }
                    _ => None,
                })
                .collect()
            }
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare(query).unwrap();
                let count = statement.column_count();
                let rows = statement.query_map([], |row| (0..count).map(|column| row.get(column)).collect()).unwrap();
                rows.collect::<Result<_, _>>().unwrap()
            }
        }
    }

    fn count(&self, table: &str) -> usize {
        self.texts(&format!("SELECT CAST(count(*) AS TEXT) FROM {table}"))[0][0].parse().unwrap()
    }

    fn tables(&self) -> BTreeMap<String, Vec<Column>> {
        let columns = self.texts(match self {
            Self::Postgres(..) => {
                "SELECT c.table_name, c.column_name, c.data_type, CAST(k.column_name IS NOT NULL AS TEXT) \
                 FROM information_schema.columns c LEFT JOIN (information_schema.table_constraints t \
                 JOIN information_schema.key_column_usage k USING (constraint_schema, constraint_name)) \
                 ON t.constraint_type = 'PRIMARY KEY' AND k.table_schema = c.table_schema \
                 AND k.table_name = c.table_name AND k.column_name = c.column_name \
                 WHERE c.table_schema = 'public' ORDER BY c.table_name, c.ordinal_position"
            }
            Self::Sqlite(_) => {
                "SELECT t.name, c.name, c.type, CASE WHEN c.pk > 0 THEN 'true' ELSE 'false' END \
                 FROM main.sqlite_schema t JOIN pragma_table_info(t.name) c \
                 WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid"
            }
        });
        let mut tables: BTreeMap<String, Vec<Column>> = BTreeMap::new();
        for row in columns {
            let [table, name, kind, is_key] = <[String; 4]>::try_from(row).unwrap();
            tables.entry(table).or_default().push(Column { name, kind: kind.to_lowercase(), is_key: is_key == "true" });
        }
        tables
    }

    /// Stores a copy of the rows of all tables.
    fn keep(&self, tables: &BTreeMap<String, Vec<Column>>, state: &str) {
        for (table, columns) in tables {
            let key = names(columns.iter().filter(|column| column.is_key), "");
            self.run(&format!(
                "CREATE TABLE kept.{state}_{table} AS SELECT *, row_number() OVER (ORDER BY {key}) AS nth FROM {table}"
            ));
        }
    }

    /// Replaces the rows of a table.
    fn fill(&self, table: &str, columns: &[Column], rows: &str) {
        let all = names(columns, "");
        self.run(&format!("DELETE FROM {table}; INSERT INTO {table} ({all}) {rows}"));
    }

    fn restore(&self, table: &str, columns: &[Column]) {
        self.fill(table, columns, &format!("SELECT {} FROM kept.now_{table} k", names(columns, "k.")));
    }

    /// Changes these columns in the first row of a table.
    fn flip(&self, table: &str, columns: &[Column], flipped: &[&str]) {
        let value = |column: &Column| match flipped.contains(&&*column.name) {
            true => format!("CASE WHEN nth = 1 THEN {} ELSE {} END", self.flipped(column), column.name),
            false => column.name.clone(),
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        self.fill(table, columns, &format!("SELECT {} FROM kept.now_{table}", values.join(", ")));
    }

    fn flipped(&self, Column { name, kind, is_key }: &Column) -> String {
        match (self, kind.as_str()) {
            // Not the key of the next row.
            (_, "bigint") if *is_key => format!("{name} + 1000003"),
            (_, "bigint") => {
                format!("CASE WHEN {name} > 4611686018427387904 THEN {name} - 1 ELSE coalesce({name}, 5) + 1 END")
            }
            (_, "text") => format!(
                "CASE WHEN {name} IS NULL OR {name} = '' THEN 'x' ELSE substr({name}, 1, length({name}) - 1) \
                 || CASE substr({name}, length({name})) WHEN '1' THEN '2' ELSE '1' END END"
            ),
            (Self::Postgres(..), "bytea") => format!(
                "CASE WHEN {name} IS NULL OR length({name}) = 0 THEN '\\x01'::bytea \
                 ELSE set_byte({name}, length({name}) - 1, get_byte({name}, length({name}) - 1) # 1) END"
            ),
            (Self::Postgres(..), "uuid") => format!(
                "CASE WHEN {name} IS NULL THEN gen_random_uuid() ELSE \
                 (left({name}::text, -1) || CASE right({name}::text, 1) WHEN '1' THEN '2' ELSE '1' END)::uuid END"
            ),
            (Self::Sqlite(_), "blob" | "uuid") => format!(
                "CASE WHEN {name} IS NULL OR length({name}) = 0 THEN randomblob(16) ELSE \
                 unhex(substr(hex({name}), 1, 2 * length({name}) - 1) \
                 || CASE substr(hex({name}), -1) WHEN '1' THEN '2' ELSE '1' END) END"
            ),
            (_, kind) => panic!("a column of type {kind}"),
        }
    }

    /// Changes rows of a table. Returns `false` if there are no rows to change in this way.
    fn tamper(&self, table: &str, columns: &[Column], tampering: Tampering, nth: usize) -> bool {
        let of = |prefix: &str| names(columns, prefix);
        let is_same = |one: &str, other: &str| {
            let keys = columns.iter().filter(|column| column.is_key);
            let keys: Vec<String> = keys.map(|Column { name, .. }| format!("{one}.{name} = {other}.{name}")).collect();
            keys.join(" AND ")
        };
        match tampering {
            Tampering::Exchanged if self.count(&format!("kept.now_{table}")) < 2 => return false,
            Tampering::Exchanged => {
                let value =
                    |Column { name, is_key, .. }: &Column| format!("{}.{name}", if *is_key { "k" } else { "o" });
                let values: Vec<String> = columns.iter().map(value).collect();
                self.fill(
                    table,
                    columns,
                    &format!(
                        "SELECT {} FROM kept.now_{table} k JOIN kept.now_{table} o \
                         ON o.nth = CASE k.nth WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE k.nth END",
                        values.join(", ")
                    ),
                );
            }
            Tampering::Restored => self.fill(
                table,
                columns,
                &format!(
                    "SELECT {} FROM kept.old_{table} o UNION ALL SELECT {} FROM kept.now_{table} k \
                     WHERE NOT EXISTS (SELECT 1 FROM kept.old_{table} o WHERE {})",
                    of("o."),
                    of("k."),
                    is_same("o", "k")
                ),
            ),
            Tampering::Deleted => {
                self.fill(table, columns, &format!("SELECT {} FROM kept.now_{table} WHERE nth <> {nth}", of("")));
            }
        }
        let same = format!("SELECT {} FROM kept.now_{table}", of(""));
        let is_missing = |rows: &str, others: &str| self.count(&format!("({rows} EXCEPT {others}) missing")) > 0;
        let rows = format!("SELECT {} FROM {table}", of(""));
        is_missing(&rows, &same) || is_missing(&same, &rows)
    }
}

fn names<'a>(columns: impl IntoIterator<Item = &'a Column>, prefix: &str) -> String {
    let names: Vec<String> = columns.into_iter().map(|column| format!("{prefix}{}", column.name)).collect();
    names.join(", ")
}

/// Returns the first two cells of the rows of a section's table.
fn cells(page: &'static str, heading: &str) -> Vec<[&'static str; 2]> {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).expect("the section");
    let section = rest.split("\n#").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    cells.map(|cells| [cells[0], cells[1]]).collect()
}

fn split(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split(", ").map(|name| name.trim_matches('`'))
}

/// Returns the unchecked columns of the documentation's table, by table.
fn not_checked(tables: &BTreeMap<String, Vec<Column>>) -> BTreeMap<String, BTreeSet<String>> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for cells in cells(include_str!("../../docs/operate/doctor.md"), "What `doctor --deep` does not check") {
        for table in split(cells[0]) {
            let columns: BTreeSet<&str> = tables[table].iter().map(|column| &*column.name).collect();
            let of_table = named.entry(table.to_owned()).or_default();
            for column in split(cells[1]) {
                match column {
                    "all" => of_table.extend(columns.iter().map(|name| (*name).to_owned())),
                    column => {
                        assert!(columns.contains(column), "table {table} has no column {column}");
                        of_table.insert(column.to_owned());
                    }
                }
            }
        }
    }
    named
}

/// A table is in the list of protected tables, or a page gives the reason why not.
#[test]
fn every_table_is_protected_or_has_a_reason() {
    let vault = Vault::init(Database::Sqlite);
    let tables = Rows::of(&vault).tables();
    let listed = PROTECTED_TABLES.into_iter();
    let other = cells(include_str!("../../docs/ARCHITECTURE.md"), "Protected tables");
    let other = other.into_iter().flat_map(|[of, _]| split(of));
    let unchecked = not_checked(&tables).into_iter().filter(|(table, columns)| columns.len() == tables[table].len());
    let mut all: Vec<String> =
        listed.chain(other).map(str::to_owned).chain(unchecked.map(|(table, _)| table)).collect();
    all.sort_unstable();
    assert_eq!(all, tables.into_keys().collect::<Vec<_>>(), "each table once");
}

/// Returns whether the check finds something, and what.
fn check(vault: &Vault) -> (bool, String) {
    let run = vault.run(&["doctor", "--deep", "--json"]);
    if run.status == Some(0) {
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(document["findings"], json!([]));
    }
    (run.status != Some(0), run.stdout)
}

fn every_column_is_checked_or_documented_as_unchecked(database: Database) {
    let mut filled = filled(database);
    let rows = Rows::of(&filled.vault);
    let tables = rows.tables();
    rows.keep(&tables, "old");
    filled.change();
    filled.vault.stop();
    rows.keep(&tables, "now");
    let vault = &filled.vault;
    let unchecked = not_checked(&tables);
    assert!(!check(vault).0, "{}", check(vault).1);

    let empty: BTreeSet<&str> = tables.keys().map(String::as_str).filter(|table| rows.count(table) == 0).collect();
    assert_eq!(empty, EMPTY.into());
    let (mut unseen, mut unseen_columns) = (BTreeSet::new(), BTreeSet::new());
    let mut changed = Vec::new();
    for (table, columns) in &tables {
        let is_empty = empty.contains(table.as_str());
        let of_table = unchecked.get(table).cloned().unwrap_or_default();
        if !is_empty {
            changed.push((table, columns, of_table.clone()));
        }
        // A row is not protected if none of its columns is.
        if is_empty || of_table.len() == columns.len() {
            continue;
        }
        for column in columns.iter().filter(|column| !of_table.contains(&column.name)) {
            rows.flip(table, columns, &[&column.name]);
            if !check(vault).0 {
                unseen_columns.insert(format!("{table}.{}", column.name));
            }
        }
        for (tampering, last) in [(Tampering::Exchanged, 1), (Tampering::Restored, 1), (Tampering::Deleted, DELETED)] {
            for nth in 1..=last {
                if rows.tamper(table, columns, tampering, nth) && !check(vault).0 {
                    unseen.insert((table.as_str(), tampering));
                }
            }
        }
        rows.restore(table, columns);
    }
    // Everything that is said not to be checked, together.
    for (table, columns, of_table) in &changed {
        rows.flip(table, columns, &of_table.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let report: Value = serde_json::from_str(&check(vault).1).unwrap();
    let mut found: Vec<&str> = report["findings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    // SQLite also reports values that violate a constraint of an unchecked column.
    found.retain(|finding| !finding.starts_with("database file: CHECK constraint failed"));
    assert_eq!(
        (unseen_columns, found, unseen),
        (BTreeSet::new(), Vec::new(), BTreeSet::new()),
        "unchecked columns that are not listed, findings in listed columns, undetected changes of rows"
    );
}
