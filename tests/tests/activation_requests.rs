//! Invalid tokens and bodies in requests to the activation listener.

use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Client, Database, Integration, Session, Vault};

struct Stage {
    vault: Vault,
    session: Session,
    client: Client,
    integration: Integration,
}

impl Stage {
    fn set(database: Database) -> Self {
        let (vault, activation_listener) =
            ActivationListener::open_with(database, &["--activation-rate=0", "--max-activations=100000"]);
        let session = vault.admin_session();
        session.save(&small("imports/a", 1));
        session.save(&small("b", 2));
        let integration = Integration::make(&vault, "import", &["imports/*", "b"]);
        Self { vault, session, client: activation_listener.client(), integration }
    }
}

#[test]
fn token_is_accepted_in_one_header_only() {
    let stage = Stage::set(Database::Sqlite);
    let token = &stage.integration.token;
    let body = json!({"namespace": "b"});
    let call = |path: &str| stage.client.request("POST", path).json(&body);
    let sent = |value: &str| call("/v1/activations").header("authorization", value).send();
    for value in [
        format!("Bearer  {token}"),
        format!("Bearer\t{token}"),
        token.clone(),
        format!("Bearer {token}, Bearer {token}"),
        format!("Bearer \"{token}\""),
    ] {
        sent(&value).problem("invalid-token");
    }
    for value in [format!("bearer {token}"), format!("BEARER {token}")] {
        sent(&value).expect(201);
    }
    let twice = call("/v1/activations").bearer(token).bearer(token).send();
    assert_eq!(twice.problem("invalid-token").header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
    for (name, value) in [
        ("authorization", format!("Basic {token}")),
        ("cookie", format!("access_token={token}")),
        ("x-api-key", token.clone()),
        ("proxy-authorization", format!("Bearer {token}")),
    ] {
        let answer = call("/v1/activations").header(name, &value).send().problem("invalid-token");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{name}: as if nothing had been sent");
    }
    call(&format!("/v1/activations?access_token={token}")).send().problem("invalid-token");
    let in_body = json!({"namespace": "b", "access_token": token});
    stage.client.request("POST", "/v1/activations").json(&in_body).send().problem("invalid-token");
    let asked = stage.client.get(&format!("/v1/activations?access_token={token}")).bearer(token).send();
    assert!(!asked.problem("malformed-request").text().contains(token));
    assert!(!stage.vault.log().contains(token));
}

#[test]
fn namespace_has_one_spelling() {
    let stage = Stage::set(Database::Sqlite);
    let ask = |namespace: &str| stage.integration.activate(&stage.client, namespace);
    ask("imports/a").expect(201);
    for other in ["IMPORTS/a", "Imports/a", "imports", "B", "b/", "b/b", "imports.a"] {
        ask(other).problem("namespace-not-allowed");
    }
    // Names below the prefix without credentials: no two spellings are equivalent.
    for other in
        ["imports/A", "imports/a/", "imports//a", "imports/./a", "imports/../b", "imports/..", "imports/a/../a"]
    {
        ask(other).problem("not-found");
    }
    let long = "x".repeat(129);
    for other in [
        "imports/*",
        "*",
        "/*",
        "**",
        "imports/%61",
        "imports/a ",
        " imports/a",
        "imports/\u{0430}",
        "imports/a\u{0}",
        "imports/\u{e4}",
        "../imports/a",
        "/imports/a",
        "imports\\a",
        "imports/?",
        "",
        &long,
    ] {
        ask(other).problem("refused-value");
    }
    assert_eq!(stage.integration.live(&stage.client).len(), 1);
}

#[test]
fn token_expires_at_stated_time() {
    let stage = Stage::set(Database::Sqlite);
    let body = json!({"namespace": "b", "ttl": 43_200});
    let end = stage.integration.activate_with(&stage.client, &body).expect(201).json()["expires_at"].clone();
    // No activation outlives its integration.
    let soon = end.as_str().unwrap().to_owned();
    let created = json!({"name": "short", "namespaces": ["b"], "expires_at": soon});
    let created = stage.session.call("POST", "/v1/integrations").json(&created).send().expect(201).json();
    let short = Integration::of(&stage.vault, "short", &created);
    let activation = short.activate_with(&stage.client, &body).expect(201).json();
    assert!(activation["expires_at"].as_str().unwrap() <= soon.as_str(), "{activation} and {soon}");

    // Poll an activation of an integration that expires during the activation.
    let minute = stage.integration.activate_with(&stage.client, &json!({"namespace": "b", "ttl": 60})).expect(201);
    let last = moment(&minute.json()["expires_at"]) - Duration::seconds(60 - 5);
    let created = json!({"name": "over", "namespaces": ["b"], "expires_at": last.format(&Rfc3339).unwrap()});
    let created = stage.session.call("POST", "/v1/integrations").json(&created).send().expect(201).json();
    let over = Integration::of(&stage.vault, "over", &created);
    let refused = loop {
        let answer = over.activate(&stage.client, "b");
        if answer.status != 201 {
            break answer;
        }
        assert!(moment(&answer.json()["expires_at"]) <= last, "{}", answer.text());
    };
    refused.problem("invalid-token");
    stage.client.get("/v1/activations").bearer(&over.token).send().problem("invalid-token");
    over.administer(&stage.vault, "set", &["--state", "enabled"]).done();
    over.activate(&stage.client, "b").problem("invalid-token");
}

fn moment(text: &Value) -> OffsetDateTime {
    OffsetDateTime::parse(text.as_str().unwrap(), &Rfc3339).unwrap()
}
