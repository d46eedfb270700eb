//! `orgvault doctor` on PostgreSQL with a Citus extension that cannot be used as configured. The extension's catalog is
//! simulated, so these tests do not need it. The tests of `citus` use the real one.

use vault_tests::sql::Sql;
use vault_tests::{Database, Vault};

/// An empty catalog in the format of the extension.
const CATALOG: &str = "\
    CREATE TABLE pg_dist_local_group (groupid int);
    INSERT INTO pg_dist_local_group VALUES (0);
    CREATE TABLE pg_dist_node (nodeid serial, nodename text, nodeport int, groupid int, noderole text DEFAULT 'primary',
        shouldhaveshards bool, isactive bool DEFAULT true, hasmetadata bool, metadatasynced bool);
    CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod text, partkey text, colocationid int, repmodel text);
    CREATE FUNCTION column_to_column_name(regclass, text) RETURNS text LANGUAGE sql AS 'SELECT $2';";

/// A step of a database administrator, and the result of `doctor` after it.
struct Step {
    sql: &'static str,
    result: &'static str,
    found: &'static str,
}

const STEPS: [Step; 9] = [
    Step {
        sql: "SET allow_system_table_mods = on; INSERT INTO pg_extension (oid, extname, extowner, extnamespace, \
              extrelocatable, extversion) VALUES (16000, 'citus', 10, 11, false, '12.1-1')",
        result: "failed",
        found: "the database has the extension Citus, but its server has not loaded it. Add citus to \
                shared_preload_libraries on every node, and restart them",
    },
    Step {
        // A server that has loaded the extension has its settings.
        sql: "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET citus.explain_analyze_sort_method = ''taskId''', current_database()); END $$",
        result: "failed",
        found: "the database has version 12.1-1 of the extension Citus, and 13.0 or later is required. Upgrade it on \
                every node, then run `ALTER EXTENSION citus UPDATE`",
    },
    Step {
        sql: "SET allow_system_table_mods = on; UPDATE pg_extension SET extversion = '13.0-1' WHERE extname = 'citus'",
        result: "failed",
        found: "the coordinator is not among the nodes of the cluster",
    },
    Step {
        sql: "INSERT INTO pg_dist_node (nodename, nodeport, groupid, shouldhaveshards, hasmetadata, metadatasynced) \
              VALUES ('coordinator.example', 5432, 0, false, true, true)",
        result: "failed",
        found: "the cluster has no worker for distributed rows. Add the workers with `SELECT citus_add_node",
    },
    Step {
        sql: "INSERT INTO pg_dist_node (nodename, nodeport, groupid, shouldhaveshards, hasmetadata, metadatasynced) \
              VALUES ('one.example', 5432, 1, true, true, true), ('two.example', 5432, 2, true, false, false)",
        result: "failed",
        found: "these nodes lack the metadata of the cluster, so they cannot locate rows: two.example:5432. Run \
                `SELECT start_metadata_sync_to_all_nodes()` at the coordinator",
    },
    Step {
        sql: "UPDATE pg_dist_node SET hasmetadata = true, metadatasynced = true",
        result: "warning",
        found: "the database has the extension Citus, but no table is distributed",
    },
    Step {
        sql: "INSERT INTO pg_dist_partition SELECT oid, 'h', 'organization_id', 1, 's' FROM pg_class \
              WHERE relname IN ('credentials', 'credential_secrets') AND relkind = 'r'; \
              INSERT INTO pg_dist_partition VALUES ('organizations', 'h', 'id', 1, 's')",
        result: "failed",
        found: "these tables are not distributed correctly: hourly_counts, erasures",
    },
    Step {
        sql: "CREATE FUNCTION run_command_on_all_nodes(text) RETURNS TABLE (result text) LANGUAGE sql \
              AS $$ VALUES ('2'), ('0'), ('1') $$",
        result: "failed",
        found: "3 transactions have been pending for more than two minutes, and hold locks on their rows",
    },
    Step {
        // An unreachable node has no result.
        sql: "CREATE OR REPLACE FUNCTION run_command_on_all_nodes(text) RETURNS TABLE (result text) LANGUAGE sql \
              AS $$ VALUES ('0'), (NULL) $$",
        result: "skipped",
        found: "the nodes do not report pending transactions",
    },
];

#[test]
fn each_state_of_the_extension_is_reported_with_remedy() {
    let vault = Vault::init(Database::Postgres);
    let doctor = || vault.owner_command(&["doctor", "--json"]).output().unwrap();
    let before = String::from_utf8(doctor().stdout).unwrap();
    assert!(!before.contains("Citus"), "{before}");
    let sql = Sql::at(vault.url());
    sql.run(CATALOG);
    for Step { sql: step, result, found } in STEPS {
        sql.run(step);
        let output = doctor();
        let text = String::from_utf8(output.stdout).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let has = |check: &&serde_json::Value| check["found"].as_str().unwrap().starts_with(found);
        let check = report["checks"].as_array().unwrap().iter().find(has);
        let check = check.unwrap_or_else(|| panic!("{step}: no check found {found:?}: {text}"));
        assert_eq!(check["result"], result, "{step}: {text}");
        assert!(
            check["remedy"].is_string() || check["found"].as_str().unwrap().contains(". "),
            "{step}: no remedy: {text}"
        );
        assert_eq!(output.status.code(), Some(if text.contains(r#""result":"failed""#) { 1 } else { 0 }), "{text}");
    }
}
