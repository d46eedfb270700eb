//! The systemd unit, the grants of PostgreSQL, the alerts and the dashboard that the documentation hands to operators.

#![allow(clippy::print_stderr, reason = "a test says what it skips")]

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vault_tests::binary::Run;
use vault_tests::database::{SERVICE, grant, new_postgres};
use vault_tests::sql::Sql;
use vault_tests::{Database, Vault};

/// The most that `systemd-analyze security` may report, in tenths.
const EXPOSURE: &str = "20";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

#[test]
fn the_page_shows_the_unit() {
    let page = fs::read_to_string(docs("OPERATIONS.md")).unwrap();
    let unit = fs::read_to_string(docs("orgvault.service")).unwrap();
    assert!(page.contains(&format!("```ini\n{unit}```\n")), "OPERATIONS.md shows another unit than orgvault.service");
}

#[test]
fn the_unit_confines_the_service() {
    let unit = docs("orgvault.service");
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE]).arg(&unit);
    match analyze.output() {
        Ok(found) => {
            let said = [found.stdout, found.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
            assert!(found.status.success() && said.contains("Overall exposure level"), "{said}");
        }
        Err(error) => {
            eprintln!("SKIPPED: systemd-analyze cannot be run ({error}); install systemd to measure the unit")
        }
    }
}

/// The metrics that a text names, without what histograms add.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    let names = words.filter(|word| word.starts_with("orgvault_"));
    names.map(|name| name.strip_suffix("_bucket").unwrap_or(name)).collect()
}

/// Alerts and dashboard ask for metrics that the page describes, and show all of them but those that only make others up.
#[test]
fn alerts_and_dashboard_ask_for_metrics_that_there_are() {
    let page = fs::read_to_string(docs("OPERATIONS.md")).unwrap();
    let section = page.split("## Metrics and alerts").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `orgvault_")).collect();
    let described = rows.iter().flat_map(|row| metrics(row.split(" | ").next().unwrap())).collect::<BTreeSet<_>>();
    let alerts = fs::read_to_string(docs("monitoring/alerts.yml")).unwrap();
    let expressions: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), alerts.matches("- alert: ").count());
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(docs("monitoring/dashboard.json")).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let shown = targets.map(|target| target["expr"].as_str().unwrap()).collect::<Vec<_>>().join("\n");
    let asked = [alerts.as_str(), &shown].map(metrics);
    for name in asked.iter().flatten() {
        assert!(described.contains(name), "{name} is not described");
    }
    let unseen: Vec<_> = described.iter().filter(|name| !asked.iter().any(|asked| asked.contains(*name))).collect();
    assert_eq!(
        unseen,
        ["orgvault_audit_delivered_total", "orgvault_inspected_rows_total", "orgvault_password_evaluations_total"]
            .iter()
            .collect::<Vec<_>>()
    );
    for name in described {
        let found = Command::new("grep").args(["-rqF", name, "crates"]).current_dir(docs("..")).status().unwrap();
        assert!(found.success(), "no code counts {name}");
    }
}

#[test]
fn the_service_has_a_right_on_every_table_and_none_that_would_hide_its_traces() {
    let vault = Vault::init(Database::Postgres);
    let sql = Sql::of(&vault);
    let without = format!(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND NOT \
         has_table_privilege('{SERVICE}', oid, 'SELECT, INSERT')"
    );
    assert_eq!(sql.run(&without), Vec::<Vec<String>>::new(), "tables that postgresql-grants.sql does not name");
    for (table, right) in [
        ("audit", "UPDATE"),
        ("audit", "DELETE"),
        ("audit", "TRUNCATE"),
        ("instance", "UPDATE"),
        ("instance_keys", "INSERT"),
        ("instance_keys", "UPDATE"),
        ("retiring_instance_keys", "INSERT"),
        ("retiring_instance_keys", "DELETE"),
        ("instance_keys", "DELETE"),
        ("schema_versions", "INSERT"),
        ("accounts", "TRUNCATE"),
        ("accounts", "TRIGGER"),
    ] {
        let has = sql.value(&format!("SELECT has_table_privilege('{SERVICE}', '{table}', '{right}')"));
        assert_eq!(has, "f", "{right} on {table}");
    }
    assert_eq!(sql.value(&format!("SELECT has_schema_privilege('{SERVICE}', 'public', 'CREATE')")), "f");
}

#[test]
fn a_missing_right_is_named_with_its_table_and_its_page() {
    let vault = Vault::init(Database::Postgres);
    let sql = Sql::of(&vault);
    for (table, command) in [("organizations", &["org", "list"][..]), ("schema_versions", &["account", "list"])] {
        sql.run(&format!("REVOKE ALL ON {table} FROM {SERVICE}"));
        let said = vault.run(command).refused().stderr;
        assert!(said.contains(&format!("permission denied for table {table}")), "{said}");
        assert!(said.contains("postgresql-grants.sql") && said.contains("OPERATIONS"), "{said}");
        grant(vault.url());
        vault.run(command).done();
    }
    // The service's role creates no tables.
    let url = grant_nothing();
    let said =
        Run::of(&mut Vault::absent(Database::Sqlite).command(&["init", "--database-url", &url])).refused().stderr;
    assert!(said.contains("permission denied for schema public") && said.contains("as the owner"), "{said}");
}

/// An empty database as a role that may do nothing in it.
fn grant_nothing() -> String {
    let url = new_postgres();
    Sql::at(&url).run("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    url.replace("://postgres@", &format!("://{SERVICE}@"))
}
