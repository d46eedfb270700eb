//! Keyless credentials: saves, changes and the instructions for their provider trust.

use crate::support::{World, WorldBuilder, assert_problem, s3};
use serde_json::{Value, json};
use vault_core::federation::FederationIssuer;
use vault_core::role::Role;

const JSON: &str = "Content-Type: application/json";
const SAVE: &str = "PATCH /v1/organization-vault";

fn world() -> World {
    let issuer = FederationIssuer::parse("https://vault.example.com").unwrap();
    WorldBuilder::default()
        .verifying()
        .parts(move |parts| parts.vault = parts.vault.clone().federation(Some(issuer.clone())))
        .start()
}

fn keyless() -> Value {
    let data =
        json!({"role_arn": "arn:aws:iam::111122223333:role/nightly", "bucket": "nightly", "region": "eu-central-1"});
    json!({"type": "s3-federated", "namespace": "imports/nightly", "data": data})
}

#[test]
fn provider_trust_of_keyless_credentials_is_shown() {
    let world = world();
    let editor = world.token(Role::Editor);
    let saved = world.send(SAVE, &[&editor, JSON], keyless().to_string());
    assert_eq!(saved.status, 201, "{}", saved.text());
    let id = saved.json()["id"].as_str().expect("an id").to_owned();
    let get = |token: &str, path: &str| world.send(&format!("GET /v1{path}"), &[token], "");
    let shown = get(&editor, &format!("/organization-vault/{id}")).json();
    assert_eq!((&shown["vend"], &shown["type"]), (&json!("short"), &json!("s3-federated")));
    assert_eq!((&shown["information"]["secrets"], &shown["information"]["bucket"]), (&json!([]), &json!("nightly")));

    let account = get(&editor, "/account").json();
    assert_eq!(account["server"]["federation_issuer"], "https://vault.example.com");
    let trust = get(&editor, &format!("/organization-vault/{id}/trust"));
    assert_eq!(trust.status, 200, "{}", trust.text());
    let trust = trust.json();
    let organization = account["organization_id"].as_str().expect("an id");
    assert_eq!(trust["issuer"], "https://vault.example.com");
    assert_eq!(trust["subject"], format!("organization:{organization}:credential:{id}"));
    assert_eq!(trust["audience"], "sts.amazonaws.com");
    let steps = trust["steps"].as_array().expect("steps");
    assert!(steps.iter().all(|step| step["title"].is_string() && step["language"].is_string()), "{trust}");

    let other = world.save(&editor, "imports/nightly", "plain");
    let refused = get(&editor, &format!("/organization-vault/{other}/trust"));
    let problem = assert_problem(&refused, 409, "conflict", "a saved secret");
    assert!(problem.detail.contains("Only keyless credentials have a provider trust"), "{}", problem.detail);
}

#[test]
fn keyless_credentials_without_a_short_form_are_refused() {
    let world = world();
    let editor = world.token(Role::Editor);
    let pointers = |response: &crate::support::Response| -> Vec<String> {
        let problem = assert_problem(response, 422, "refused-value", "a rule");
        problem.errors.iter().map(|error| format!("{} {}", error.pointer, error.code)).collect()
    };
    let verified = world.send("PATCH /v1/organization-vault?verify=true", &[&editor, JSON], keyless().to_string());
    assert_eq!(pointers(&verified), ["/verify not-allowed"]);
    let saved = world.send(SAVE, &[&editor, JSON], keyless().to_string()).json();
    let replace = format!("POST /v1/organization-vault/{}/versions?verify=true", saved["id"].as_str().expect("an id"));
    let replacement = serde_json::json!({"data": keyless()["data"]}).to_string();
    assert_eq!(pointers(&world.send(&replace, &[&editor, JSON], replacement)), ["/verify not-allowed"]);
    let mut any = keyless();
    any["vend"] = "any".into();
    assert_eq!(pointers(&world.send(SAVE, &[&editor, JSON], any.to_string())), ["/vend not-allowed"]);
    let mut foreign = keyless();
    foreign["data"]["endpoint"] = "https://store.example".into();
    foreign["data"]["sts_endpoint"] = "https://sts.eu-central-1.amazonaws.com".into();
    assert_eq!(pointers(&world.send(SAVE, &[&editor, JSON], foreign.to_string())), ["/data/endpoint not-allowed"]);
    assert!(world.storage.probed().is_empty());

    let off = WorldBuilder::default().start();
    let editor = off.token(Role::Editor);
    let refused = off.send(SAVE, &[&editor, JSON], keyless().to_string());
    assert_eq!(pointers(&refused), ["/type not-allowed"]);
    let account = off.send("GET /v1/account", &[&editor], "").json();
    assert!(account["server"].get("federation_issuer").is_none());
    assert_eq!(off.send(SAVE, &[&editor, JSON], s3("a", "b")).status, 201);
}
