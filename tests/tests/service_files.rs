//! Files for operators: systemd unit, container files, PostgreSQL grants, alerts and dashboard.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use vault_testkit::stores::find_tool;
use vault_tests::binary::{self, Run};
use vault_tests::database::{SERVICE, grant, new_postgres};
use vault_tests::process::free_address;
use vault_tests::skip;
use vault_tests::sql::Sql;
use vault_tests::{Database, Vault};

/// Maximum exposure that `systemd-analyze security` may report, in tenths.
const EXPOSURE: &str = "20";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

#[test]
fn unit_confines_the_service() {
    let unit = docs("orgvault.service");
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE]).arg(&unit);
    match analyze.output() {
        Ok(found) => {
            let output = [found.stdout, found.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
            assert!(found.status.success() && output.contains("Overall exposure level"), "{output}");
        }
        Err(error) => skip!(format!("systemd-analyze cannot be run ({error}); install systemd to measure the unit")),
    }
}

/// Parses the documents of a file with the YAML parser of the tests' tools.
fn documents(file: &Path) -> Vec<Value> {
    let python = docs("../target/tools/venv/bin/python");
    let program = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let mut command = Command::new(python);
    let documents = Run::of(command.args(["-c", program]).arg(file)).done().json();
    documents.as_array().unwrap().clone()
}

fn composition() -> Value {
    documents(&docs("../packaging/compose.yaml")).swap_remove(0)
}

/// The Kubernetes schemas accept the manifests, the kustomization contains all of them, and the program accepts their
/// flags.
#[test]
fn kubernetes_manifests_and_flags_are_valid() {
    let directory = docs("../packaging/kubernetes");
    let all = |name: &str| documents(&directory.join(name));
    let mut listed: BTreeSet<String> = all("kustomization.yaml")[0]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    listed.insert("kustomization.yaml".to_owned());
    let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.collect();
    assert_eq!(files.iter().filter(|name| !name.contains(".example.")).cloned().collect::<BTreeSet<_>>(), listed);
    for name in files.iter().filter(|name| !name.contains("external-secret") && **name != "kustomization.yaml") {
        let mut validate = Command::new(find_tool("kubernetes-validate"));
        let run = Run::of(validate.arg("--strict").arg(directory.join(name))).done();
        let output = [run.stdout, run.stderr].concat();
        assert!(output.contains("passed for resource") && !output.contains("WARN"), "{name}: {output}");
    }

    let (vault, database) = (all("vault.yaml"), all("database.yaml"));
    let of = |documents: &[Value], kind: &str| documents.iter().find(|one| one["kind"] == kind).unwrap().clone();
    for pods in [of(&vault, "StatefulSet"), of(&database, "StatefulSet")] {
        let pod = &pods["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        // The requirements of the pod security standard "restricted", and more.
        assert_eq!(
            (&pod["securityContext"]["runAsNonRoot"], &pod["automountServiceAccountToken"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let context = &container["securityContext"];
        assert_eq!(
            (&context["allowPrivilegeEscalation"], &context["readOnlyRootFilesystem"]),
            (&json!(false), &json!(true))
        );
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
        assert!(container["readinessProbe"].is_object() && container["resources"]["limits"]["memory"].is_string());
    }
    let container = of(&vault, "StatefulSet")["spec"]["template"]["spec"]["containers"][0].clone();
    let help = |arguments: &[&str]| Run::of(binary::command().args(arguments)).done().stdout;
    let flags = [help(&["serve", "--help"]), help(&["help", "settings"])].concat();
    for argument in container["args"].as_array().unwrap().iter().filter_map(Value::as_str) {
        let flag = argument.split('=').next().unwrap();
        assert!(
            flag == "serve" || flags.contains(&format!("{flag} ")) || flags.contains(&format!("{flag}\n")),
            "{flag}"
        );
    }
}

#[test]
fn compose_file_confines_service_and_uses_documented_files() {
    let composition = composition();
    let service = &composition["services"]["orgvault"];
    assert_eq!((&service["read_only"], &service["cap_drop"][0]), (&json!(true), &json!("ALL")));
    assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]));
    let image = fs::read_to_string(docs("../packaging/Dockerfile")).unwrap();
    let user = service["user"].as_str().unwrap();
    assert!(image.contains(&format!("\nUSER {user}\n")) && !user.starts_with('0'), "{user}");
    for port in service["ports"].as_array().unwrap() {
        assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{port}");
    }
    // PostgreSQL is reachable only internally, because its connections are not encrypted.
    let database = &composition["services"]["database"];
    assert_eq!((&database["networks"], database.get("ports")), (&json!(["inside"]), None));
    assert_eq!(composition["networks"]["inside"]["internal"], true);

    // Secrets are files and never environment variables.
    let page = fs::read_to_string(docs("operate/containers.md")).unwrap();
    let secrets = composition["secrets"].as_object().unwrap();
    for (name, secret) in secrets {
        let file = secret["file"].as_str().unwrap();
        assert_eq!(file, format!("secrets/{name}"));
        assert!(page.contains(file), "the page does not say how to make {file}");
    }
    for service in [service, database] {
        for name in service["secrets"].as_array().unwrap() {
            assert!(secrets.contains_key(name.as_str().unwrap()), "{name}");
        }
        for (name, value) in service["environment"].as_object().unwrap() {
            let value = value.as_str().unwrap();
            assert!(!name.contains("PASSWORD") || value.starts_with("/run/secrets/"), "{name}");
            let secret = value.strip_prefix("/run/secrets/");
            assert!(secret.is_none_or(|name| secrets.contains_key(name)), "{value}");
        }
    }
    // Its settings exist. The program would warn about unknown ones.
    let settings = Run::of(binary::command().args(["help", "settings"])).done().stdout;
    for name in service["environment"].as_object().unwrap().keys() {
        let flag = name.strip_prefix("ORGVAULT_").unwrap().to_lowercase().replace('_', "-");
        let of_file = flag.strip_suffix("-file").unwrap_or(&flag);
        assert!([&*flag, of_file].iter().any(|flag| settings.contains(&format!("--{flag} "))), "{name}");
    }
}

#[test]
fn image_health_check_detects_ready_server() {
    let vault = Vault::start(Database::Sqlite);
    let check = |admin: SocketAddr| {
        let mut command = Command::new(docs("../packaging/healthcheck"));
        Run::of(command.env("ORGVAULT_ADMIN_LISTEN", admin.to_string()))
    };
    assert_ne!(check(free_address()).status, Some(0));
    check(vault.server().admin).done();
}

/// Returns the metrics in a text, without the suffixes of histograms.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    let names = words.filter(|word| word.starts_with("orgvault_"));
    let added = ["_bucket", "_count", "_sum"];
    names.map(|name| added.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)).collect()
}

/// The page has a row for each alert, with the text of the rules. `ORGVAULT_UPDATE=1` regenerates them.
#[test]
fn every_alert_is_described() {
    let (path, alerts) = (docs("operate/metrics.md"), fs::read_to_string(docs("monitoring/alerts.yml")).unwrap());
    let head = "| Alert | Means | What to do |\n|---|---|---|\n";
    let mut expected = String::new();
    for rule in alerts.split("- alert: ").skip(1) {
        let field = |name: &str| {
            let line = rule.lines().find_map(|line| line.trim().strip_prefix(name));
            let words = line.unwrap_or_else(|| panic!("{name} {rule}")).trim().trim_matches('"');
            words.replace("{{ $value }}", "*n*").replace("{{ $labels.", "*").replace(" }}", "*").replace('|', "\\|")
        };
        let severity = field("labels: {severity:").trim_end_matches('}').to_owned();
        let name = rule.lines().next().unwrap();
        expected += &format!("| `{name}` ({severity}) | {} | {} |\n", field("summary:"), field("description:"));
    }
    vault_testkit::page::assert_table(&path, head, &expected);
}

/// Alerts and dashboard use metrics that the page describes. The dashboard shows all of them except those that others
/// are derived from.
#[test]
fn alerts_and_dashboard_use_existing_metrics() {
    let page = fs::read_to_string(docs("operate/metrics.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `orgvault_")).collect();
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
        [
            "orgvault_audit_delivered_total",
            "orgvault_egress_proxy_failures_total",
            "orgvault_federation_exchanges_total",
            "orgvault_federation_key_age_seconds",
            "orgvault_inspected_rows_total",
            "orgvault_password_evaluations_total",
        ]
        .iter()
        .collect::<Vec<_>>()
    );
}

#[test]
fn service_role_has_minimal_rights_on_every_table() {
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
        ("instance", "INSERT"),
        ("instance", "DELETE"),
        ("schema_versions", "INSERT"),
        ("entities", "TRUNCATE"),
        ("entities", "TRIGGER"),
    ] {
        let has = sql.value(&format!("SELECT has_table_privilege('{SERVICE}', '{table}', '{right}')"));
        assert_eq!(has, "f", "{right} on {table}");
    }
    assert_eq!(sql.value(&format!("SELECT has_schema_privilege('{SERVICE}', 'public', 'CREATE')")), "f");
}

#[test]
fn missing_right_is_named_with_its_table_and_its_page() {
    let vault = Vault::init(Database::Postgres);
    let sql = Sql::of(&vault);
    for (table, command) in [("lookups", &["org", "list"][..]), ("schema_versions", &["account", "list"])] {
        sql.run(&format!("REVOKE ALL ON {table} FROM {SERVICE}"));
        let output = vault.run(command).refused().stderr;
        assert!(output.contains(&format!("permission denied for table {table}")), "{output}");
        assert!(output.contains("postgresql-grants.sql") && output.contains("docs/operate/postgresql.md"), "{output}");
        grant(vault.url());
        vault.run(command).done();
    }
    // The service's role does not create tables.
    let url = grant_nothing();
    let output =
        Run::of(&mut Vault::absent(Database::Sqlite).command(&["init", "--database-url", &url])).refused().stderr;
    assert!(output.contains("permission denied for schema public") && output.contains("as the owner"), "{output}");
}

/// Returns the URL of an empty database for a role without any rights in it.
fn grant_nothing() -> String {
    let url = new_postgres();
    Sql::at(&url).run("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    url.replace("://postgres@", &format!("://{SERVICE}@"))
}
