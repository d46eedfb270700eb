//! For every column of every table, `doctor --deep` detects a value that was modified with SQL, or the documentation
//! lists the column as unchecked.

use crate::inspection::live;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vault_tests::integration::{ActivationListener, Integration};
use vault_tests::issuer::TestIssuer;
use vault_tests::samples::small;
use vault_tests::sql::Sql;
use vault_tests::{Database, Vault};

/// Tables that are empty here. Other tests cover the sink's position and retiring keys.
const EMPTY: [&str; 6] =
    ["audit_delivery", "check_requests", "check_rounds", "erasures", "federation_keys", "retiring_instance_keys"];

/// Creates a vault with a row in every other table.
fn filled() -> Vault {
    let (vault, activation_listener) = ActivationListener::open(Database::Postgres);
    let admin = vault.admin_session();
    let (colleague, _) = live(&vault, &admin);
    let idempotent = admin.call("PATCH", "/v1/organization-vault").header("Idempotency-Key", "once");
    idempotent.json(&small("links", 1)).send().expect(201);
    let invited = admin.invite("later@example.com", "viewer").expect(201).json();
    vault.client().enrol(invited["enrolment_code"].as_str().unwrap(), "correct horse battery staple").expect(200);
    let session = colleague.log_in(&vault.client());
    session.post_account("passcode", &colleague.proof()).expect(200);
    let issuer = TestIssuer::start();
    vault.run(&["issuer", "add", "own", "--issuer", &issuer.url()]).done();
    Integration::make(&vault, "hourly", &["links"]).activate(&activation_listener.client(), "links").expect(201);
    let receiver =
        admin.call("POST", "/v1/receivers").json(&json!({"kind": "webhook", "url": "https://hooks.example"}));
    let id = receiver.send().expect(201).json()["id"].as_str().unwrap().to_owned();
    admin.call("POST", &format!("/v1/receivers/{id}/test")).send().expect(202);
    vault.run(&["namespace", "freeze", "exports", "--org", "Acme"]).done();
    vault
}

/// Returns the unchecked columns of the documentation's table, each as `table.column`.
fn not_checked(all: &[(String, String, String)]) -> BTreeSet<String> {
    let page = include_str!("../../docs/operate/disk.md");
    let (_, rest) = page.split_once("\n## What `doctor --deep` does not check\n").expect("the section");
    let section = rest.split("\n#").next().unwrap();
    let mut named = BTreeSet::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let columns = |cell: &'static str| cell.split(", ").map(|name| name.trim_matches('`'));
        for table in columns(cells[0]) {
            let of_table: BTreeSet<_> = all.iter().filter(|(of, ..)| of == table).map(|(_, name, _)| &**name).collect();
            assert!(!of_table.is_empty(), "there is no table {table}");
            for column in columns(cells[1]) {
                match column {
                    "all" => named.extend(of_table.iter().map(|column| format!("{table}.{column}"))),
                    column if of_table.contains(column) => drop(named.insert(format!("{table}.{column}"))),
                    column => panic!("table {table} has no column {column}"),
                }
            }
        }
    }
    named
}

#[test]
fn every_column_is_checked_or_documented_as_unchecked() {
    let mut vault = filled();
    vault.stop();
    let sql = Sql::of(&vault);
    // A superuser removes the constraints.
    sql.run(
        "DO $$ DECLARE one record; BEGIN FOR one IN SELECT conrelid::regclass AS of, conname AS name FROM pg_constraint \
         WHERE contype = 'c' AND connamespace = 'public'::regnamespace LOOP \
         EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.of, one.name); END LOOP; END $$",
    );
    let columns = sql.run(
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' \
         ORDER BY 1, ordinal_position",
    );
    let columns: Vec<(String, String, String)> = columns
        .into_iter()
        .map(|row| <[String; 3]>::try_from(row).map(|[table, name, kind]| (table, name, kind)).unwrap())
        .collect();
    let expected = not_checked(&columns);
    let mut unseen = BTreeSet::new();
    for (table, name, kind) in &columns {
        let is_empty = sql.value(&format!("SELECT count(*) FROM {table}")) == "0";
        assert_eq!(is_empty, EMPTY.contains(&table.as_str()), "{table}");
        if is_empty {
            unseen.extend(Some(format!("{table}.{name}")).filter(|column| expected.contains(column)));
            continue;
        }
        let changed = match kind.as_str() {
            "bytea" => format!(
                "CASE WHEN {name} IS NULL OR length({name}) = 0 THEN '\\x01'::bytea \
                 ELSE set_byte({name}, length({name}) - 1, get_byte({name}, length({name}) - 1) # 1) END"
            ),
            "bigint" => {
                format!("CASE WHEN {name} > (1::bigint << 62) THEN {name} - 1 ELSE coalesce({name}, 5) + 1 END")
            }
            "uuid" => format!(
                "CASE WHEN {name} IS NULL THEN gen_random_uuid() ELSE \
                 (left({name}::text, -1) || CASE right({name}::text, 1) WHEN '1' THEN '2' ELSE '1' END)::uuid END"
            ),
            _ => format!(
                "CASE WHEN {name} IS NULL OR {name} = '' THEN 'x' \
                 ELSE left({name}, -1) || CASE right({name}, 1) WHEN '1' THEN '2' ELSE '1' END END"
            ),
        };
        sql.run(&format!("CREATE TABLE kept AS SELECT * FROM {table}"));
        sql.run(&format!(
            "SET session_replication_role = replica; \
             UPDATE {table} SET {name} = {changed} WHERE ctid = (SELECT max(ctid) FROM {table})"
        ));
        let run = vault.run(&["doctor", "--deep", "--json"]);
        if run.status == Some(0) {
            let document: Value = serde_json::from_str(&run.stdout).unwrap();
            assert_eq!(document["findings"], serde_json::json!([]), "{table}.{name}");
            unseen.insert(format!("{table}.{name}"));
        }
        sql.run(&format!(
            "SET session_replication_role = replica; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept; \
             DROP TABLE kept"
        ));
    }
    let wrongly_said: Vec<_> = expected.difference(&unseen).collect();
    let not_said: Vec<_> = unseen.difference(&expected).collect();
    assert!(wrongly_said.is_empty() && not_said.is_empty(), "checked: {wrongly_said:#?}\nnot said: {not_said:#?}");
}
