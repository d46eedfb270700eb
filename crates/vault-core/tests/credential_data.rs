//! Properties of credential data: one canonical form, which round-trips.

use proptest::prelude::*;
use serde_json::{Value, json};
use vault_core::credential::{CredentialData, CredentialType, StoredDataError};
use vault_core::field::FieldCode;
use vault_core::json::{Limits, parse};
use vault_testkit::strategy::{ANY_SECRET, Sample, key_files, samples};

fn canonical(data: &CredentialData) -> String {
    String::from_utf8(data.to_canonical_json().expose().to_vec()).unwrap()
}

proptest! {
    #[test]
    fn sealed_data_opens_to_same_data(sample in samples(ANY_SECRET)) {
        let data = sample.parse().unwrap();
        prop_assert_eq!(data.kind(), sample.kind);
        let first = canonical(&data);
        let again = CredentialData::from_canonical_json(sample.kind, first.as_bytes()).unwrap();
        prop_assert_eq!(canonical(&again), first);
    }

    #[test]
    fn data_round_trip_preserves_all_fields(sample in samples(ANY_SECRET)) {
        let stored: Value = serde_json::from_str(&canonical(&sample.parse().unwrap())).unwrap();
        for (name, given) in &sample.members {
            let expected = match (*name, given) {
                ("service_account_key", Value::String(text)) => serde_json::from_str(text).unwrap(),
                _ => given.clone(),
            };
            prop_assert_eq!(&stored[*name], &expected);
        }
        prop_assert_eq!(stored.as_object().unwrap().len(), sample.members.len());
    }

    #[test]
    fn canonical_form_is_sorted_without_whitespace(sample in samples(ANY_SECRET)) {
        let text = canonical(&sample.parse().unwrap());
        // serde_json writes its maps sorted and compact.
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(value.to_string(), text);
    }

    #[test]
    fn field_order_does_not_matter(sample in samples(ANY_SECRET), at in any::<prop::sample::Index>()) {
        let mut turned = sample.clone();
        turned.members.rotate_left(at.index(sample.members.len()));
        prop_assert_eq!(canonical(&turned.parse().unwrap()), canonical(&sample.parse().unwrap()));
    }

    #[test]
    fn key_file_is_equal_as_object_and_text(file in key_files()) {
        let read = |key: Value| {
            let members = vec![("service_account_key", key), ("bucket", json!("bucket"))];
            canonical(&Sample { kind: CredentialType::Gcs, members }.parse().unwrap())
        };
        let text = serde_json::to_string_pretty(&file).unwrap();
        prop_assert_eq!(read(json!(format!(" \n{text}\n"))), read(file));
    }

    #[test]
    fn stored_bytes_of_any_kind_never_panic(bytes in any::<Vec<u8>>(), kind in prop::sample::select(&CredentialType::ALL[..])) {
        prop_assert!(CredentialData::from_canonical_json(kind, &bytes).is_err());
    }

    #[test]
    fn data_of_another_type_is_refused(sample in samples(ANY_SECRET)) {
        let text = canonical(&sample.parse().unwrap());
        for kind in CredentialType::ALL.into_iter().filter(|kind| *kind != sample.kind) {
            let error = CredentialData::from_canonical_json(kind, text.as_bytes());
            prop_assert!(matches!(error, Err(StoredDataError::Shape(_))));
        }
    }
}

#[test]
fn type_names_are_exact() {
    let names = ["s3", "azure_identity", "gcs", "direct-link", "s3-federated", "azure-federated", "gcs-federated"];
    for (kind, name) in CredentialType::ALL.into_iter().zip(names) {
        assert_eq!(kind.as_str(), name);
        assert_eq!(CredentialType::parse(name), Some(kind));
    }
    for name in ["", "S3", "s3 ", "azure-identity", "direct_link", "gcs\0"] {
        assert_eq!(CredentialType::parse(name), None);
    }
}

#[test]
fn stored_data_that_new_rules_refuse_is_readable() {
    for (kind, text) in [
        (CredentialType::S3, r#"{"access_key_id":"***","bucket":" a/b ","secret_access_key":"${VAR}"}"#),
        (
            CredentialType::AzureIdentity,
            r#"{"client_id":"","client_secret":"\u0000","connection_string":"nonsense","tenant_id":"a b"}"#,
        ),
        (CredentialType::Gcs, r#"{"bucket":"b","service_account_key":{"type":"other"}}"#),
        (CredentialType::DirectLink, r#"{"headers":{},"url":"ftp://h/p#x"}"#),
    ] {
        let data = CredentialData::from_canonical_json(kind, text.as_bytes()).unwrap();
        assert_eq!(canonical(&data), text);
    }
}

#[test]
fn links_must_be_https() {
    let root = parse(br#"{"url": "http://host/path"}"#, Limits::REQUEST).unwrap().root;
    let errors = CredentialData::parse(CredentialType::DirectLink, root, "/data").unwrap_err();
    assert_eq!((errors[0].pointer.as_str(), errors[0].code), ("/data/url", FieldCode::NotAllowed));
}

#[test]
fn debug_output_contains_no_value() {
    for text in [
        r#"{"access_key_id":"canary-1","bucket":"b","secret_access_key":"canary-2","external_id":"canary-3"}"#,
        r#"{"access_key_id":"AKIACANARY","bucket":"b","secret_access_key":"canary/canary"}"#,
    ] {
        let node = parse(text.as_bytes(), Limits::REQUEST).unwrap();
        assert!(!format!("{node:?}").to_lowercase().contains("canary"));
        let data = CredentialData::parse(CredentialType::S3, node.root, "").unwrap();
        assert!(!format!("{data:?} {:?}", data.to_canonical_json()).to_lowercase().contains("canary"));
    }
}
