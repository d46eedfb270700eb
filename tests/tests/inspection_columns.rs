//! For every column of every table, `doctor --deep` detects a value that was modified with SQL, or the documentation
//! lists the column as unchecked. `docs/tampering.md` has the results for whole rows.

use crate::inspection::live;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vault_core::inspect::PROTECTED_TABLES;
use vault_tests::browser::eventually;
use vault_tests::integration::{ActivationListener, Integration};
use vault_tests::issuer::TestIssuer;
use vault_tests::samples::small;
use vault_tests::sql::Sql;
use vault_tests::{Database, Vault};

/// Tables that are empty here. Other tests cover the sink's position.
const EMPTY: [&str; 3] = ["audit_delivery", "check_requests", "erasures"];

const PASSWORD: &str = "correct horse battery staple";

/// Returns a vault with a row in every other table.
fn filled() -> Vault {
    let (mut vault, activation_listener) = ActivationListener::open(Database::Postgres);
    let admin = vault.admin_session();
    let (colleague, _) = live(&vault, &admin);
    let idempotent = admin.call("PATCH", "/v1/organization-vault").header("Idempotency-Key", "once");
    idempotent.json(&small("links", 1)).send().expect(201);
    let invited = admin.invite("later@example.com", "viewer").expect(201).json();
    vault.client().enrol(invited["enrolment_code"].as_str().unwrap(), PASSWORD).expect(200);
    colleague.log_in(&vault.client()).post_account("passcode", &colleague.proof()).expect(200);
    let issuer = TestIssuer::start();
    vault.run(&["issuer", "add", "own", "--issuer", &issuer.url()]).done();
    let daily = Integration::make(&vault, "daily", &["links"]);
    daily.activate(&activation_listener.client(), "links").expect(201);
    let request = json!({"kind": "webhook", "url": "https://hooks.example"});
    let added = admin.call("POST", "/v1/receivers").json(&request).send().expect(201).json();
    admin.call("POST", &format!("/v1/receivers/{}/test", added["id"].as_str().unwrap())).send().expect(202);
    vault.run(&["namespace", "freeze", "exports", "--org", "Acme"]).done();
    let attempted = || Sql::of(&vault).value("SELECT count(*) FROM receiver_status") != "0";
    eventually("an attempt to deliver the event", attempted);
    vault.stop();
    vault
}

/// A column, its type, and whether it belongs to the key of its table.
struct Column {
    name: String,
    kind: String,
    is_key: bool,
}

/// The access of a database superuser.
const SUPERUSER: &str = "SET session_replication_role = replica;";

fn tables(sql: &Sql<'_>) -> BTreeMap<String, Vec<Column>> {
    let columns = sql.run(
        "SELECT c.table_name, c.column_name, c.data_type, CAST(k.column_name IS NOT NULL AS TEXT) \
         FROM information_schema.columns c LEFT JOIN (information_schema.table_constraints t \
         JOIN information_schema.key_column_usage k USING (constraint_schema, constraint_name)) \
         ON t.constraint_type = 'PRIMARY KEY' AND k.table_schema = c.table_schema \
         AND k.table_name = c.table_name AND k.column_name = c.column_name \
         WHERE c.table_schema = 'public' ORDER BY c.table_name, c.ordinal_position",
    );
    let mut tables: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    for row in columns {
        let [table, name, kind, is_key] = <[String; 4]>::try_from(row).unwrap();
        tables.entry(table).or_default().push(Column { name, kind, is_key: is_key == "true" });
    }
    tables
}

/// Returns the statement that changes these columns in the first row of a table.
fn flip<'a>(table: &str, columns: &[Column], flipped: impl Iterator<Item = &'a Column>) -> String {
    let key = columns.iter().filter(|column| column.is_key).map(|column| &*column.name).collect::<Vec<_>>().join(", ");
    let values = flipped.map(|column| format!("{} = {}", column.name, column.flipped())).collect::<Vec<_>>().join(", ");
    format!("UPDATE {table} SET {values} WHERE ctid = (SELECT ctid FROM {table} ORDER BY {key} LIMIT 1);")
}

impl Column {
    fn flipped(&self) -> String {
        let Self { name, kind, is_key } = self;
        match kind.as_str() {
            // Not the key of the next row.
            "bigint" if *is_key => format!("{name} + 1000003"),
            "bigint" => {
                format!("CASE WHEN {name} > 4611686018427387904 THEN {name} - 1 ELSE coalesce({name}, 5) + 1 END")
            }
            "text" => format!(
                "CASE WHEN {name} IS NULL OR {name} = '' THEN 'x' ELSE left({name}, -1) \
                 || CASE right({name}, 1) WHEN '1' THEN '2' ELSE '1' END END"
            ),
            "bytea" => format!(
                "CASE WHEN {name} IS NULL OR length({name}) = 0 THEN '\\x01'::bytea \
                 ELSE set_byte({name}, length({name}) - 1, get_byte({name}, length({name}) - 1) # 1) END"
            ),
            "uuid" => format!(
                "CASE WHEN {name} IS NULL THEN gen_random_uuid() ELSE \
                 (left({name}::text, -1) || CASE right({name}::text, 1) WHEN '1' THEN '2' ELSE '1' END)::uuid END"
            ),
            kind => panic!("a column of type {kind}"),
        }
    }
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
    let vault = Vault::init(Database::Postgres);
    let tables = tables(&Sql::of(&vault));
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

#[test]
fn every_column_is_checked_or_documented_as_unchecked() {
    let vault = filled();
    let sql = Sql::of(&vault);
    let tables = tables(&sql);
    let unchecked = not_checked(&tables);
    let is_listed = |table: &str, column: &Column| unchecked.get(table).is_some_and(|of| of.contains(&column.name));
    assert!(!check(&vault).0, "{}", check(&vault).1);
    sql.run(
        "CREATE SCHEMA kept; DO $$ DECLARE one record; BEGIN FOR one IN SELECT conrelid::regclass AS of, conname AS name \
         FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace LOOP \
         EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.of, one.name); END LOOP; END $$",
    );
    let is_empty = |table: &&String| sql.value(&format!("SELECT count(*) FROM {table}")) == "0";
    assert_eq!(tables.keys().filter(is_empty).collect::<Vec<_>>(), EMPTY);
    let (mut unseen, mut together) = (Vec::new(), SUPERUSER.to_owned());
    for (table, columns) in tables.iter().filter(|(table, _)| !EMPTY.contains(&table.as_str())) {
        sql.run(&format!("CREATE TABLE kept.{table} AS SELECT * FROM {table}"));
        let restore = format!("{SUPERUSER} DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept.{table};");
        let (listed, checked): (Vec<_>, Vec<_>) = columns.iter().partition(|column| is_listed(table, column));
        for column in checked {
            sql.run(&format!("{restore} {}", flip(table, columns, std::iter::once(column))));
            if !check(&vault).0 {
                unseen.push(format!("{table}.{}", column.name));
            }
        }
        sql.run(&restore);
        if !listed.is_empty() {
            together += &flip(table, columns, listed.into_iter());
        }
    }
    // Everything that is said not to be checked.
    sql.run(&together);
    let report: Value = serde_json::from_str(&check(&vault).1).unwrap();
    assert_eq!(
        (unseen, &report["findings"]),
        (Vec::new(), &json!([])),
        "unchecked columns that are not listed, findings in listed columns"
    );
}
