//! What is refused, where, and that a refusal never repeats the value.

use crate::support;

use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::{ANY_SECRET, Sample, UPPER_SECRET, key_files, samples};
use vault_core::credential::CredentialType;
use vault_core::field::{FieldCode, FieldError, FlawKind};
use vault_testkit::strategy::refused::{spoilt, spoilt_by_space};

fn codes(errors: &[FieldError]) -> Vec<(String, FieldCode)> {
    errors.iter().map(|error| (error.pointer.clone(), error.code)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_spoilt_value_is_refused_by_its_name(sample in samples(ANY_SECRET)) {
        for (name, value) in &sample.members {
            let Value::String(text) = value else { continue };
            let mut cases = spoilt(text);
            if *name != "service_account_key" {
                cases.extend(spoilt_by_space(text));
            }
            for (value, code) in cases {
                let errors = sample.with(name, json!(value)).parse().unwrap_err();
                prop_assert_eq!(codes(&errors), [(format!("/data/{name}"), code)], "{:?}", value);
            }
        }
    }

    #[test]
    fn a_spoilt_header_is_refused_by_its_name(sample in samples(ANY_SECRET)) {
        let Some(headers) = sample.get("headers").and_then(Value::as_object) else { return Ok(()) };
        for (name, value) in headers {
            for (value, code) in spoilt(value.as_str().unwrap()).into_iter().filter(|(value, _)| value.is_ascii()) {
                let mut headers = headers.clone();
                headers.insert(name.clone(), json!(value));
                let errors = sample.with("headers", json!(headers)).parse().unwrap_err();
                prop_assert_eq!(codes(&errors), [(format!("/data/headers/{name}"), code)], "{:?}", value);
            }
        }
    }

    #[test]
    fn a_spoilt_part_of_a_key_file_is_refused(file in key_files(), as_text in any::<bool>()) {
        for name in ["type", "project_id", "private_key_id", "private_key", "client_email"] {
            for value in [json!(null), json!(1), json!(""), json!("***"), json!("${X}"), json!("<redacted>"), json!("a b\u{0}")] {
                let mut file = file.clone();
                file[name] = value;
                let file = if as_text { json!(file.to_string()) } else { file };
                let members = vec![("service_account_key", file), ("bucket", json!("b"))];
                let errors = Sample { kind: CredentialType::Gcs, members }.parse().unwrap_err();
                prop_assert_eq!(errors.len(), 1);
                prop_assert_eq!(&errors[0].pointer, "/data/service_account_key");
                prop_assert_eq!(errors[0].code.kind(), FlawKind::Value);
                prop_assert!(errors[0].detail.contains(name));
            }
        }
    }

    #[test]
    fn all_flaws_are_listed_at_once(sample in samples(ANY_SECRET), choices in prop::collection::vec(0..5_u8, 16)) {
        let mut broken = sample.clone();
        let mut expected = BTreeSet::new();
        for ((name, _), choice) in sample.members.iter().zip(choices) {
            let required = sample.kind.fields().iter().any(|field| field.name == *name && field.required);
            let code = match choice {
                0 => { broken = broken.with(name, json!(null)); FieldCode::WrongType }
                1 => { broken = broken.with(name, json!(1)); FieldCode::WrongType }
                2 if required => { broken = broken.without(name); FieldCode::Required }
                3 if *name != "path_style_access" && *name != "headers" => {
                    broken = broken.with(name, json!("")); FieldCode::Blank
                }
                _ => continue,
            };
            expected.insert((format!("/data/{name}"), code.as_str()));
        }
        broken.members.push(("surplus", json!({})));
        broken.members.push(("bad name", json!({})));
        expected.insert(("/data/surplus".into(), "unknown"));
        expected.insert(("/data".into(), "unknown"));
        let errors = broken.parse().unwrap_err();
        let found: BTreeSet<_> = errors.iter().map(|error| (error.pointer.clone(), error.code.as_str())).collect();
        prop_assert_eq!(found.len(), errors.len());
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_refusal_repeats_a_value(sample in samples(UPPER_SECRET)) {
        // Every field is spoilt in a way that keeps its text.
        let mut broken = sample.clone();
        for (name, value) in &sample.members {
            let spoilt = value.as_str().map_or_else(|| json!([value]), |text| json!(format!("\"{text}\"")));
            broken = broken.with(name, spoilt);
        }
        let said: String = broken.parse().unwrap_err().iter().map(|error| format!("{error} {error:?}")).collect();
        for (_, value) in &sample.members {
            if let Some(text) = value.as_str().filter(|text| text.len() >= 20) {
                prop_assert!(!said.contains(text));
            }
        }
    }
}

#[test]
fn data_that_is_no_object() {
    for text in ["null", "[]", "\"{}\"", "1", "true"] {
        let errors = support::read(CredentialType::S3, text).unwrap_err();
        assert_eq!(codes(&errors), [("/data".to_owned(), FieldCode::WrongType)]);
    }
}

#[test]
fn key_files_that_do_not_parse() {
    for key in ["\"nonsense\"", "\"[]\"", "\"{\\\"type\\\":1,\\\"type\\\":2}\"", "\"\\\"{}\"", "\"MIIE\""] {
        let text = format!(r#"{{"bucket":"b","service_account_key":{key}}}"#);
        let errors = support::read(CredentialType::Gcs, &text).unwrap_err();
        assert_eq!(codes(&errors), [("/data/service_account_key".to_owned(), FieldCode::Malformed)], "{key}");
    }
    // An empty object lacks each of the five members, and all are said at once.
    let errors = support::read(CredentialType::Gcs, r#"{"bucket":"b","service_account_key":{}}"#).unwrap_err();
    assert_eq!(errors.len(), 5);
    let fraction = r#"{"bucket":"b","service_account_key":{"x":[{"y":0.1}]}}"#;
    assert_eq!(support::read(CredentialType::Gcs, fraction).unwrap_err().len(), 6);
}

#[test]
fn headers_that_cannot_be_sent() {
    let read = |headers: Value| {
        let members = vec![("url", json!("https://host/path")), ("headers", headers)];
        Sample { kind: CredentialType::DirectLink, members }.parse()
    };
    let many: serde_json::Map<_, _> = (0..33).map(|number| (format!("x-{number}"), json!("value"))).collect();
    for (headers, pointer, code) in [
        (json!({}), "/data/headers", FieldCode::Blank),
        (json!([]), "/data/headers", FieldCode::WrongType),
        (json!("a: b"), "/data/headers", FieldCode::WrongType),
        (json!({"a": 1}), "/data/headers/a", FieldCode::WrongType),
        (json!({"a b": "c"}), "/data/headers", FieldCode::Malformed),
        (json!({"a": "x\r\nb: c"}), "/data/headers/a", FieldCode::ControlCharacter),
        (json!({"A": "x1", "a": "y1"}), "/data/headers/a", FieldCode::Malformed),
        (json!({"Host": "other"}), "/data/headers/Host", FieldCode::NotAllowed),
        (json!(many), "/data/headers", FieldCode::TooLong),
    ] {
        let errors = read(headers.clone()).unwrap_err();
        assert_eq!(codes(&errors), [(pointer.to_owned(), code)], "{headers}");
    }
    assert!(read(json!({"Accept": "*/*", "If-Match": "*", "Authorization": "Bearer abc"})).is_ok());
}

#[test]
fn places_do_not_name_users() {
    let sample = Sample {
        kind: CredentialType::S3,
        members: vec![
            ("access_key_id", json!("AKIA2TESTONLY7SAMPLE")),
            ("secret_access_key", json!("wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET")),
            ("bucket", json!("exports")),
        ],
    };
    assert!(sample.parse().is_ok());
    for (name, value) in [
        ("endpoint", "https://user:pass@host"),
        ("endpoint", "https://host/?token=abc"),
        ("key_prefix", "s3://user@host/prefix"),
    ] {
        let errors = sample.with(name, json!(value)).parse().unwrap_err();
        assert_eq!(codes(&errors), [(format!("/data/{name}"), FieldCode::NotAllowed)]);
    }
}
