//! Keyless credentials: saves, changes and the instructions for their provider trust.

use super::app::{App, s3, text};
use super::credentials::VAULT;
use serde_json::{Value, json};
use vault_core::federation::FederationIssuer;

fn federating() -> App {
    App::with(|setup| {
        setup.verifying();
        let issuer = FederationIssuer::parse("https://vault.example.com").unwrap();
        setup.parts.vault = setup.parts.vault.clone().federation(Some(issuer));
    })
}

fn keyless() -> Value {
    let data =
        json!({"role_arn": "arn:aws:iam::111122223333:role/nightly", "bucket": "nightly", "region": "eu-central-1"});
    json!({"type": "s3-federated", "namespace": "imports/nightly", "data": data})
}

#[test]
fn provider_trust_of_keyless_credentials_is_shown() {
    let app = federating();
    let editor = app.editor();
    let id = editor.save(&keyless());
    let shown = editor.show(&id).json();
    assert_eq!((&shown["vend"], &shown["type"]), (&json!("short"), &json!("s3-federated")));
    assert_eq!((&shown["information"]["secrets"], &shown["information"]["bucket"]), (&json!([]), &json!("nightly")));
    let account = editor.own_account();
    assert_eq!(account["server"]["federation_issuer"], "https://vault.example.com");
    let trust = editor.get(&format!("{VAULT}/{id}/trust")).expect(200).json();
    assert_eq!(trust["issuer"], "https://vault.example.com");
    assert_eq!(trust["subject"], format!("organization:{}:credential:{id}", text(&account["organization_id"])));
    assert_eq!(trust["audience"], "sts.amazonaws.com");
    let steps = trust["steps"].as_array().expect("steps");
    assert!(steps.iter().all(|step| step["title"].is_string() && step["language"].is_string()), "{trust}");
    let other = editor.save(&s3("imports/nightly", "plain"));
    let refused = editor.get(&format!("{VAULT}/{other}/trust")).problem("conflict").text();
    assert!(refused.contains("Only keyless credentials have a provider trust"), "{refused}");
}

#[test]
fn keyless_credentials_without_a_short_form_are_refused() {
    let app = federating();
    let editor = app.editor();
    let refused = |answer: vault_tests::Answer, pointer: &str| {
        let fields = answer.problem("refused-value").refused_fields();
        assert_eq!(fields, [(pointer.to_owned(), "not-allowed".to_owned())]);
    };
    refused(editor.patch(&format!("{VAULT}?verify=true"), &keyless()), "/verify");
    let id = editor.save(&keyless());
    let replacement = json!({"data": keyless()["data"]});
    refused(editor.post(&format!("{VAULT}/{id}/versions?verify=true"), &replacement), "/verify");
    let mut any = keyless();
    any["vend"] = "any".into();
    refused(editor.try_save(&any), "/vend");
    let mut foreign = keyless();
    foreign["data"]["endpoint"] = "https://store.example".into();
    foreign["data"]["sts_endpoint"] = "https://sts.eu-central-1.amazonaws.com".into();
    refused(editor.try_save(&foreign), "/data/endpoint");
    assert!(app.storage.probed().is_empty());

    let off = App::start();
    let editor = off.editor();
    refused(editor.try_save(&keyless()), "/type");
    assert!(editor.own_account()["server"].get("federation_issuer").is_none());
    editor.save(&s3("a", "b"));
}
