//! The visible information of a credential: permitted fields only.

use proptest::prelude::*;
use serde_json::{Value, json};
use vault_core::credential::{CredentialType, FieldClass, Fingerprint, Information};
use vault_testkit::strategy::{Sample, UPPER_SECRET, read, samples};

fn information(sample: &Sample) -> String {
    sample.parse().unwrap().information(Fingerprint::from_digest(&[0x1f; 32])).as_json().to_owned()
}

/// Returns the generated part of every secret: characters that occur nowhere else.
fn secret_runs(value: &Value, runs: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let others = |c: char| !c.is_ascii_uppercase() || matches!(c, 'A' | 'T' | 'Z');
            runs.extend(text.split(others).filter(|run| run.len() >= 20).map(str::to_owned));
        }
        Value::Object(members) => members.values().for_each(|value| secret_runs(value, runs)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn information_contains_no_part_of_secret(sample in samples(UPPER_SECRET)) {
        let shown = information(&sample);
        let mut runs = Vec::new();
        for field in sample.kind.fields().iter().filter(|field| field.class == FieldClass::Secret) {
            if let Some(value) = sample.get(field.name) {
                secret_runs(value, &mut runs);
            }
        }
        prop_assert!(!runs.is_empty());
        for run in runs {
            for window in run.as_bytes().windows(5) {
                let window = std::str::from_utf8(window).unwrap();
                prop_assert!(!shown.contains(window));
            }
            // Hosts are shown in lower case, so that is searched, too.
            prop_assert!(!shown.contains(&run.to_lowercase()));
        }
    }

    #[test]
    fn ids_show_at_most_four_characters_and_a_quarter(sample in samples(UPPER_SECRET)) {
        let shown: Value = serde_json::from_str(&information(&sample)).unwrap();
        for field in sample.kind.fields().iter().filter(|field| field.class == FieldClass::Id) {
            let Some(id) = sample.get(field.name).and_then(Value::as_str) else { continue };
            let masked = shown[field.name].as_str().unwrap();
            let tail = masked.strip_prefix('\u{2026}').unwrap();
            prop_assert!(id.ends_with(tail));
            prop_assert!(tail.len() <= 4 && tail.len() * 4 <= id.len());
        }
    }

    #[test]
    fn information_contains_locations_and_names_of_secrets(sample in samples(UPPER_SECRET)) {
        let shown: Value = serde_json::from_str(&information(&sample)).unwrap();
        let mut names = Vec::new();
        for field in sample.kind.fields() {
            match (field.class, sample.get(field.name)) {
                (FieldClass::Location, given) => prop_assert_eq!(shown.get(field.name), given),
                (FieldClass::Secret, given) => {
                    prop_assert_eq!(shown.get(field.name), None);
                    names.extend(given.map(|_| field.name));
                }
                _ => {}
            }
        }
        prop_assert_eq!(&shown["secrets"], &json!(names));
        prop_assert_eq!(&shown["fingerprint"], "1f1f1f1f1f1f");
    }

    #[test]
    fn information_is_read_back_as_it_was_written(sample in samples(UPPER_SECRET)) {
        let text = information(&sample);
        let again = Information::from_json(text.clone()).unwrap();
        prop_assert_eq!(again.as_json(), text);
    }

    #[test]
    fn secret_in_visible_field_is_refused(sample in samples(UPPER_SECRET)) {
        if let Some(secret) = sample.get("secret_access_key") {
            for name in ["bucket", "region", "key_prefix", "access_key_id"] {
                // A region is shorter than some secrets. Then its own rule refuses the value.
                let errors = sample.with(name, secret.clone()).parse().unwrap_err();
                prop_assert_eq!(&errors[0].pointer, &format!("/data/{name}"));
            }
            let within = json!(format!("data/{}/", secret.as_str().unwrap()));
            prop_assert_eq!(&sample.with("key_prefix", within).parse().unwrap_err()[0].pointer, "/data/key_prefix");
        }
        if let Some(secret) = sample.get("client_secret") {
            for name in ["tenant_id", "client_id", "container"] {
                prop_assert_eq!(&sample.with(name, secret.clone()).parse().unwrap_err()[0].pointer, &format!("/data/{name}"));
            }
        }
    }
}

fn shown(kind: CredentialType, text: &str) -> String {
    read(kind, text).unwrap().information(Fingerprint::from_digest(&[0xab; 32])).as_json().to_owned()
}

#[test]
fn s3() {
    let text = r#"{"secret_access_key":"wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET","access_key_id":"AKIA2TESTONLY7SAMPLE",
        "bucket":"exports","path_style_access":false,"session_token":"FwoGZXIvYXdzE"}"#;
    let expected = r#"{"bucket":"exports","path_style_access":false,"access_key_id":"…MPLE","secrets":["secret_access_key","session_token"],"fingerprint":"abababababab"}"#;
    assert_eq!(shown(CredentialType::S3, text), expected);
}

#[test]
fn azure_identity() {
    let text = r#"{"tenant_id":"contoso.onmicrosoft.com","client_id":"8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a","client_secret":"abc8Q~x.y_z-1",
        "connection_string":"AccountName=exports;AccountKey=c2VjcmV0"}"#;
    let expected = r#"{"tenant_id":"contoso.onmicrosoft.com","client_id":"…4f2a","account_name":"exports","has_account_key":true,"secrets":["client_secret","connection_string"],"fingerprint":"abababababab"}"#;
    assert_eq!(shown(CredentialType::AzureIdentity, text), expected);
    let text = r#"{"connection_string":"BlobEndpoint=https://madeupacct33.z07.blob.storage.azure.net/;SharedAccessSignature=sv=2024-11-04&se=2027-06-30T22:00:00Z&sig=made-up%2FSignature33%3D"}"#;
    let expected = r#"{"account_name":"madeupacct33","expires_at":"2027-06-30T22:00:00Z","has_account_key":false,"secrets":["connection_string"],"fingerprint":"abababababab"}"#;
    assert_eq!(shown(CredentialType::AzureIdentity, text), expected);
}

#[test]
fn gcs() {
    let text = r#"{"bucket":"exports","service_account_key":{"type":"service_account","project_id":"acme-1","client_email":"reader@acme-1.iam.gserviceaccount.com",
        "private_key_id":"0123456789abcdef","private_key":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"}}"#;
    let expected = r#"{"bucket":"exports","client_email":"reader@acme-1.iam.gserviceaccount.com","project_id":"acme-1","private_key_id":"…cdef","secrets":["service_account_key"],"fingerprint":"abababababab"}"#;
    assert_eq!(shown(CredentialType::Gcs, text), expected);
    let text = text.replace(r#""type":"#, r#""universe_domain":"universe.example","type":"#);
    let expected = expected.replace(r#""private_key_id""#, r#""universe_domain":"universe.example","private_key_id""#);
    assert_eq!(shown(CredentialType::Gcs, &text), expected);
}

#[test]
fn direct_link() {
    let text = r#"{"url":"https://user:pass@Bucket.s3.Example.com:8443/secret/path?X-Amz-Date=20261120T110000Z&X-Amz-Expires=3600&X-Amz-Signature=ab",
        "headers":{"Authorization":"Bearer token"}}"#;
    let expected = r#"{"scheme":"https","host":"bucket.s3.example.com:8443","expires_at":"2026-11-20T12:00:00Z","secrets":["url","headers"],"fingerprint":"abababababab"}"#;
    assert_eq!(shown(CredentialType::DirectLink, text), expected);
}
