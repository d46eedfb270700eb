//! Activation: an integration gets the credentials of its namespaces, and nothing else.

use serde_json::{Value, json};
use vault_tests::binary::Run;
use vault_tests::process::{Server, free_address};
use vault_tests::samples::{every_type, s3, small};
use vault_tests::sql::Sql;
use vault_tests::{ActivationListener, Client, Database, Integration, Vault, on_both_databases};

on_both_databases! {
    saved_data_is_returned_only_by_activation_listener,
    frozen_namespace_cannot_be_activated,
    rotated_token_works_for_requested_overlap,
}

/// Returns the credentials of the activation.
fn credentials(answer: &Value) -> Vec<&Value> {
    answer["credentials"].as_array().unwrap().iter().collect()
}

fn saved_data_is_returned_only_by_activation_listener(database: Database) {
    let (vault, activation_listener) = ActivationListener::open(database);
    let session = vault.admin_session();
    let mut samples = every_type();
    for sample in &mut samples {
        sample.request["namespace"] = json!("imports/nightly");
    }
    let ids: Vec<String> = samples.iter().map(|sample| session.save(&sample.request)).collect();
    let integration = Integration::make(&vault, "nightly import", &["imports/nightly"]);
    assert!(integration.token.starts_with("ovi_"), "scanners for secrets know it by this");

    let body = json!({"namespace": "imports/nightly", "purpose": "the import of 2 o'clock", "ttl": 600});
    let answer = integration.activate_with(&activation_listener.client(), &body).expect(201);
    let activation = answer.json();
    assert_eq!(activation["namespace"], "imports/nightly");
    let opened = credentials(&activation);
    assert_eq!(opened.len(), samples.len());
    for ((sample, id), opened) in samples.iter().zip(&ids).zip(opened) {
        assert_eq!(opened["id"], **id, "oldest first");
        assert_eq!((&opened["type"], &opened["form"]), (&sample.request["type"], &json!("raw")));
        let (mut saved, mut data) = (sample.request["data"].clone(), opened["data"].clone());
        for key in [&mut saved, &mut data] {
            // A key file is an object, saved as an object or as a string.
            if let Some(text) = key["service_account_key"].as_str() {
                key["service_account_key"] = serde_json::from_str(text).unwrap();
            }
        }
        assert_eq!(data, saved);
    }
    // Neither the log nor the list contains secrets.
    let (log, list) = (vault.log(), session.try_list().text());
    for secret in samples.iter().flat_map(|sample| &sample.secrets).chain([&&*integration.token]) {
        assert!(!log.contains(secret) && !list.contains(secret), "{secret}");
    }
}

#[test]
fn namespace_is_returned_on_each_activation() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let (session, client) = (vault.admin_session(), activation_listener.client());
    for namespace in ["imports", "imports/a", "imports/a/b", "importsx", "other"] {
        session.save(&small(namespace, 1));
    }
    let below = Integration::make(&vault, "below", &["imports/*"]);
    let exact = Integration::make(&vault, "exact", &["imports"]);
    for (namespace, by_prefix, by_name) in [
        ("imports/a", true, false),
        ("imports/a/b", true, false),
        ("imports", false, true),
        ("importsx", false, false),
        ("other", false, false),
        ("nothing/here", false, false),
    ] {
        for (integration, allowed) in [(&below, by_prefix), (&exact, by_name)] {
            let answer = integration.activate(&client, namespace);
            if allowed {
                assert_eq!(credentials(&answer.expect(201).json()).len(), 1);
            } else {
                // The response does not depend on whether the namespace contains credentials.
                answer.problem("namespace-not-allowed");
            }
        }
    }
    below.activate(&client, "imports/empty").problem("not-found");
    session.save(&small("imports/empty", 2)); // a credential that was saved later
    below.activate(&client, "imports/empty").expect(201);
    for body in [json!({}), json!({"namespace": ""}), json!({"namespace": "imports/*"}), json!({"namespace": null})] {
        let answer = below.activate_with(&client, &body);
        assert!(matches!(answer.status, 400 | 422), "{body}: {}", answer.status);
    }
}

fn frozen_namespace_cannot_be_activated(database: Database) {
    let (vault, activation_listener) = ActivationListener::open(database);
    let (session, client) = (vault.admin_session(), activation_listener.client());
    session.save(&small("imports/a", 1));
    session.save(&small("imports/b", 2));
    let integration = Integration::make(&vault, "import", &["imports/*"]);
    integration.activate(&client, "imports/a").expect(201);

    let frozen = vault.json(&["namespace", "freeze", "imports/a", "--org", "Acme"]);
    assert_eq!(frozen, json!({"credentials": 1, "integrations": 1, "changed": true}));
    integration.activate(&client, "imports/a").problem("frozen");
    integration.check(&client, "imports/a", &[]).problem("frozen");
    integration.activate(&client, "imports/b").expect(201);
    assert_eq!(vault.json(&["namespace", "freeze", "imports/a", "--org", "acme"])["changed"], false);
    assert_eq!(vault.json(&["namespace", "list"])[0]["namespace"], "imports/a");

    assert_eq!(vault.json(&["namespace", "thaw", "imports/a", "--org", "Acme"])["changed"], true);
    integration.activate(&client, "imports/a").expect(201);
    assert_eq!(vault.json(&["namespace", "list"]), json!([]));
}

#[test]
fn token_stops_working_with_its_integration() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let (session, client) = (vault.admin_session(), activation_listener.client());
    session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "import", &["imports"]);
    let works = || integration.activate(&client, "imports").status;
    assert_eq!(works(), 201);

    integration.administer(&vault, "set", &["--state", "disabled"]).done();
    integration.activate(&client, "imports").problem("invalid-token");
    integration.administer(&vault, "set", &["--state", "enabled"]).done();
    assert_eq!(works(), 201);

    vault.run(&["org", "set", "--state", "disabled", "Acme"]).done();
    integration.activate(&client, "imports").problem("invalid-token");
    vault.run(&["org", "set", "--state", "enabled", "Acme"]).done();
    assert_eq!(works(), 201);

    integration.administer(&vault, "delete", &["--yes"]).done();
    integration.activate(&client, "imports").problem("invalid-token");
    integration.administer(&vault, "set", &["--state", "enabled"]).refused();

    // Any other text.
    for token in ["", "ovi_", "ovi_0000000000000000000000000000000000000000000000000", &integration.token[..40]] {
        let body = json!({"namespace": "imports"});
        let call = client.request("POST", "/v1/activations").bearer(token).json(&body);
        call.send().problem("invalid-token");
    }
}

#[test]
fn reenabled_organization_keeps_tokens_but_no_sessions() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let account = vault.admin();
    let session = account.log_in(&vault.client());
    session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "import", &["imports"]);
    let works = || (integration.activate(&activation_listener.client(), "imports").status, session.is_live());
    assert_eq!(works(), (201, true));

    let disabled = vault.run(&["org", "set", "--state", "disabled", "Acme"]).done().stdout;
    assert_eq!(works(), (401, false));
    assert!(disabled.contains("With `--state enabled`, the tokens work again; the sessions do not."), "{disabled}");
    let enabled = vault.run(&["org", "set", "--state", "enabled", "Acme"]).done().stdout;
    assert_eq!(works(), (201, false));
    assert!(enabled.contains("its integration tokens work again. Sessions stay ended."), "{enabled}");
    assert_eq!(account.log_in(&vault.client()).ids().len(), 1);
}

fn rotated_token_works_for_requested_overlap(database: Database) {
    let (vault, activation_listener) = ActivationListener::open(database);
    let (session, client) = (vault.admin_session(), activation_listener.client());
    session.save(&small("imports", 1));
    let first = Integration::make(&vault, "import", &["imports"]);
    let rotate = ["integration", "rotate", "--org", "Acme", "--name", "import"];
    let second = Integration::of(&vault, "import", &vault.json(&rotate));
    assert_eq!((&second.id, second.token == first.token), (&first.id, false));
    for integration in [&first, &second] {
        integration.activate(&client, "imports").expect(201);
    }
    let third = Integration::of(&vault, "import", &vault.json(&[&rotate[..], &["--overlap", "0"]].concat()));
    for dead in [&first, &second] {
        dead.activate(&client, "imports").problem("invalid-token");
    }
    third.activate(&client, "imports").expect(201);
    vault.run(&[&rotate[..], &["--overlap", "604801"]].concat()).misused();
    // Lists of integrations contain no tokens.
    let listed = vault.run(&["integration", "list", "--json"]).done().stdout;
    assert!(listed.contains(&first.id) && !listed.contains("ovi_"), "{listed}");
}

#[test]
fn listeners_serve_only_their_routes() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let account = vault.admin();
    let session = account.log_in(&vault.client());
    session.save(&s3().request);
    let integration = Integration::make(&vault, "import", &["imports/nightly"]);

    // The public listener has no operation that decrypts credentials.
    let body = json!({"namespace": "imports/nightly"});
    for (method, path) in
        [("POST", "/v1/activations"), ("GET", "/v1/activations"), ("POST", "/v1/activations/check"), ("GET", "/v1")]
    {
        for token in [&integration.token, &session.token] {
            let call = vault.client();
            let call = call.request(method, path).bearer(token);
            let call = if method == "POST" { call.json(&body) } else { call };
            call.send().problem("not-found");
        }
    }
    for (method, path) in [("GET", "/v1/organization-vault"), ("GET", "/v1/accounts"), ("GET", "/v1/integrations")] {
        vault.client().request(method, path).bearer(&integration.token).send().problem("invalid-token");
    }
    // The activation listener has no operation of the public one.
    let client = activation_listener.client();
    client.request("POST", "/v1/activations").bearer(&session.token).json(&body).send().problem("invalid-token");
    client.get("/v1/organization-vault").bearer(&session.token).send().problem("not-found");
    client.request("POST", "/v1/login").json(&account.sound_login()).send().problem("not-found");
    client.get("/metrics").send().problem("not-found");
    client.get("/readyz").send().expect(200);
}

#[test]
fn every_decision_is_recorded() {
    let (vault, activation_listener) = ActivationListener::open(Database::Postgres);
    let (session, client) = (vault.admin_session(), activation_listener.client());
    session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "import", &["imports"]);
    let body = json!({"namespace": "imports", "purpose": "a rehearsal"});
    integration.activate_with(&client, &body).expect(201);
    integration.activate(&client, "elsewhere").problem("namespace-not-allowed");
    vault.run(&["namespace", "freeze", "imports", "--org", "Acme"]).done();
    integration.activate(&client, "imports").problem("frozen");

    let rows = Sql::of(&vault).run(&format!(
        "SELECT action, namespace, purpose FROM audit WHERE integration_id = '{}' ORDER BY at, id",
        integration.id
    ));
    let found: Vec<(&str, &str, &str)> = rows.iter().map(|row| (&*row[0], &*row[1], &*row[2])).collect();
    assert!(found.contains(&("namespace.activated", "imports", "a rehearsal")), "{found:?}");
    for (refused, namespace) in [("outside", "elsewhere"), ("frozen", "imports")] {
        assert!(found.iter().any(|row| row.0.contains(refused) && row.1 == namespace), "{refused}: {found:?}");
    }
    assert!(rows.iter().flatten().all(|text| !text.contains("ovi_") && !text.contains("7sGh")), "{found:?}");
}

#[test]
fn integration_planted_or_changed_by_sql_grants_nothing() {
    let (vault, activation_listener) = ActivationListener::open(Database::Postgres);
    let (session, client, sql) = (vault.admin_session(), activation_listener.client(), Sql::of(&vault));
    session.save(&small("secret", 1));
    let narrow = Integration::make(&vault, "narrow", &["imports"]);
    let disabled = Integration::make(&vault, "disabled", &["secret"]);
    disabled.administer(&vault, "set", &["--state", "disabled"]).done();
    let document = |of: &Integration| format!("(SELECT sealed FROM entities WHERE id = '{}')", of.id);
    let narrow_row = format!("WHERE id = '{}'", narrow.id);
    let before = sql.value(&format!("SELECT encode(sealed, 'hex') FROM entities {narrow_row}"));
    assert!(!before.contains("696d706f727473"), "imports is not readable");

    sql.run(&format!("UPDATE entities SET sealed = {} {narrow_row}", document(&disabled)));
    narrow.activate(&client, "secret").problem("invalid-token");
    // A command does not sign such a row again.
    narrow.administer(&vault, "set", &["--state", "enabled"]).refused();
    sql.run(&format!("UPDATE entities SET sealed = decode('{before}', 'hex') {narrow_row}"));
    narrow.activate(&client, "imports").problem("not-found");
    assert!(vault.metric("orgvault_integrity_failures_total") >= 1);
}

#[test]
fn processes_by_role_share_one_database() {
    let vault = Vault::init(Database::Postgres);
    let activation_listener = ActivationListener { address: free_address() };
    let listen = format!("--activation-listen={}", activation_listener.address);
    let start = |flags: &[&str]| {
        let mut command = vault.serve_command();
        command.args(flags);
        command
    };
    let api = Server::start(start(&["--role=api", &listen]), &vault.scratch("out"), &vault.scratch("log"));
    let mut activation =
        Server::spawn(start(&["--role=activation", &listen]), &vault.scratch("out-2"), &vault.scratch("log-2"));
    activation.wait_until_ready_by(&activation_listener.client());

    let session = vault.admin().log_in(&api.client());
    session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "import", &["imports"]);
    integration.activate(&activation_listener.client(), "imports").expect(201);
    // The server for activations has no public listener, and vice versa.
    assert!(activation.client().get("/livez").try_send().is_err());
    assert_eq!(activation.stop(), Some(0));
    assert!(activation_listener.client().get("/livez").try_send().is_err());
    assert_eq!(session.list().len(), 1);

    let refused = Server::fail(start(&["--role=activation"])).misused();
    assert!(refused.stderr.contains("--activation-listen"), "{}", refused.stderr);
}

#[test]
fn rate_limit_applies_per_integration() {
    let (vault, activation_listener) = ActivationListener::open_with(Database::Sqlite, &["--activation-rate=1"]);
    let session = vault.admin_session();
    session.save(&small("imports", 1));
    let (busy, other) = (Integration::make(&vault, "a", &["imports"]), Integration::make(&vault, "b", &["imports"]));
    let client: Client = activation_listener.client();
    let refused = std::iter::repeat_with(|| busy.activate(&client, "imports"))
        .take(200)
        .find(|answer| answer.status != 201)
        .expect("it is limited some time");
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    other.activate(&client, "imports").expect(201);

    // Jobs that start together run one after another.
    let jobs: Vec<_> = (0..6)
        .map(|_| {
            let mut job = busy.command(activation_listener, &["exec", "--namespace", "imports", "--wait", "10m"]);
            std::thread::spawn(move || Run::of(job.args(["--", "true"])).done())
        })
        .collect();
    jobs.into_iter().for_each(|job| drop(job.join().unwrap()));
}
