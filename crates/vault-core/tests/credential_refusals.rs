//! Refused values and their positions. A refusal never repeats the value.

use crate::support::{corrupted, corrupted_by_space};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::field::{FieldCode, FieldError, ViolationKind};
use vault_core::json::{self, Limits};
use vault_testkit::strategy::{ANY_SECRET, Sample, UPPER_SECRET, key_files, read, samples};

fn codes(errors: &[FieldError]) -> Vec<(String, FieldCode)> {
    errors.iter().map(|error| (error.pointer.clone(), error.code)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn corrupted_value_is_refused_by_its_name(sample in samples(ANY_SECRET)) {
        for (name, value) in &sample.members {
            let Value::String(text) = value else { continue };
            let mut cases = corrupted(text);
            if *name != "service_account_key" {
                cases.extend(corrupted_by_space(text));
            }
            for (value, code) in cases {
                let errors = sample.with(name, json!(value)).parse().unwrap_err();
                prop_assert_eq!(codes(&errors), [(format!("/data/{name}"), code)], "{:?}", value);
            }
        }
    }

    #[test]
    fn corrupted_header_is_refused_by_its_name(sample in samples(ANY_SECRET)) {
        let Some(headers) = sample.get("headers").and_then(Value::as_object) else { return Ok(()) };
        for (name, value) in headers {
            for (value, code) in corrupted(value.as_str().unwrap()).into_iter().filter(|(value, _)| value.is_ascii()) {
                let mut headers = headers.clone();
                headers.insert(name.clone(), json!(value));
                let errors = sample.with("headers", json!(headers)).parse().unwrap_err();
                prop_assert_eq!(codes(&errors), [(format!("/data/headers/{name}"), code)], "{:?}", value);
            }
        }
    }

    #[test]
    fn corrupted_part_of_a_key_file_is_refused(file in key_files(), as_text in any::<bool>()) {
        for name in ["type", "project_id", "private_key_id", "private_key", "client_email"] {
            for value in [json!(null), json!(1), json!(""), json!("***"), json!("${X}"), json!("<redacted>"), json!("a b\u{0}")] {
                let mut file = file.clone();
                file[name] = value;
                let file = if as_text { json!(file.to_string()) } else { file };
                let members = vec![("service_account_key", file), ("bucket", json!("b"))];
                let errors = Sample { kind: CredentialType::Gcs, members }.parse().unwrap_err();
                prop_assert_eq!(errors.len(), 1);
                prop_assert_eq!(&errors[0].pointer, "/data/service_account_key");
                prop_assert_eq!(errors[0].code.kind(), ViolationKind::Value);
                prop_assert!(errors[0].detail.contains(name));
            }
        }
    }

    #[test]
    fn all_violations_are_listed_together(sample in samples(ANY_SECRET), choices in prop::collection::vec(0..5_u8, 16)) {
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
        // Every field is corrupted in a way that keeps its text.
        let mut broken = sample.clone();
        for (name, value) in &sample.members {
            let corrupted = value.as_str().map_or_else(|| json!([value]), |text| json!(format!("\"{text}\"")));
            broken = broken.with(name, corrupted);
        }
        let message: String = broken.parse().unwrap_err().iter().map(|error| format!("{error} {error:?}")).collect();
        for (_, value) in &sample.members {
            if let Some(text) = value.as_str().filter(|text| text.len() >= 20) {
                prop_assert!(!message.contains(text));
            }
        }
    }
}

#[test]
fn non_object_data_is_refused() {
    for text in ["null", "[]", "\"{}\"", "1", "true"] {
        let errors = read(CredentialType::S3, text).unwrap_err();
        assert_eq!(codes(&errors), [("/data".to_owned(), FieldCode::WrongType)]);
    }
}

#[test]
fn unparsable_key_files_are_refused() {
    for key in ["\"nonsense\"", "\"[]\"", "\"{\\\"type\\\":1,\\\"type\\\":2}\"", "\"\\\"{}\"", "\"MIIE\""] {
        let text = format!(r#"{{"bucket":"b","service_account_key":{key}}}"#);
        let errors = read(CredentialType::Gcs, &text).unwrap_err();
        assert_eq!(codes(&errors), [("/data/service_account_key".to_owned(), FieldCode::Malformed)], "{key}");
    }
    // An empty object lacks each of the five fields, and all are reported together.
    let errors = read(CredentialType::Gcs, r#"{"bucket":"b","service_account_key":{}}"#).unwrap_err();
    assert_eq!(errors.len(), 5);
    let fraction = r#"{"bucket":"b","service_account_key":{"x":[{"y":0.1}]}}"#;
    assert_eq!(read(CredentialType::Gcs, fraction).unwrap_err().len(), 6);
}

#[test]
fn unsendable_headers_are_refused() {
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
fn locations_contain_no_user() {
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

fn s3(members: Vec<(&'static str, Value)>) -> Sample {
    let mut all = vec![("access_key_id", json!("SPACEKEY00000031")), ("secret_access_key", json!("made-up/Secret+31"))];
    all.extend(members);
    Sample { kind: CredentialType::S3, members: all }
}

proptest! {
    /// Tools add the bucket to the endpoint, so an endpoint that contains it addresses a folder with the name of the bucket.
    #[test]
    fn endpoint_is_refused_when_it_contains_the_bucket(
        bucket in "[a-z][a-z0-9-]{5,30}[a-z0-9]",
        store in "[a-z0-9]{2,10}\\.[a-z]{3,10}\\.(example|com)",
        port in prop_oneof![Just(""), Just(":9000")],
        base in prop_oneof![Just(""), Just("/gateway")],
        path_style in proptest::option::of(any::<bool>()),
        slash in prop_oneof![Just(""), Just("/")],
    ) {
        let read = |endpoint: String| {
            let mut members = vec![("bucket", json!(bucket)), ("endpoint", json!(endpoint))];
            members.extend(path_style.map(|flag| ("path_style_access", json!(flag))));
            s3(members).parse()
        };
        let right = format!("https://{store}{port}{base}");
        let in_host = [
            format!("https://{bucket}.{store}{port}{base}{slash}"),
            format!("HTTPS://{}.{store}{port}{base}{slash}", bucket.to_uppercase()),
        ];
        let in_path = [
            format!("https://{store}{port}{base}/{bucket}{slash}"),
            format!("https://{store}{port}{base}/{bucket}/in{slash}"),
        ];
        // With the bucket in the path, the host is the storage's own.
        let (accepted, refused) = if path_style == Some(true) { (&in_host[..], &[][..]) } else { (&[][..], &in_host[..]) };
        for right in accepted {
            prop_assert!(read(right.clone()).is_ok(), "{}", right);
        }
        for wrong in refused.iter().chain(&in_path) {
            let errors = read(wrong.clone()).unwrap_err();
            prop_assert_eq!(codes(&errors), [("/data/endpoint".to_owned(), FieldCode::NotAllowed)], "{}", wrong);
            prop_assert!(errors[0].detail.ends_with(&format!(": use {right}")), "{}", errors[0].detail);
        }
        for endpoint in [
            format!("{right}{slash}"),
            format!("https://{bucket}-2.{store}{port}{base}"),
            format!("https://{store}{port}{base}/{bucket}-2"),
        ] {
            prop_assert!(read(endpoint.clone()).is_ok(), "{}", endpoint);
        }
    }

    /// All three fields of the application, or none if the connection string suffices.
    #[test]
    fn application_is_complete_or_connection_string_is_usable(given: [bool; 3], opens in 0..3_usize) {
        let names = ["tenant_id", "client_id", "client_secret"];
        let opening = ["", ";AccountKey=c2VjcmV0", ";SharedAccessSignature=sv=2024-11-04&sig=abc%3D"][opens];
        let mut members = vec![("connection_string", json!(format!("AccountName=madeupacct{opening}")))];
        members.extend(names.iter().zip(given).filter(|(_, given)| *given).map(|(name, _)| (*name, json!(name.replace('_', "-")))));
        let parsed = Sample { kind: CredentialType::AzureIdentity, members }.parse();
        let missing = names.iter().zip(given).filter(|(_, given)| !given).map(|(name, _)| *name);
        let expected: Vec<_> = missing.map(|name| (format!("/data/{name}"), FieldCode::Required)).collect();
        if expected.is_empty() || (opens > 0 && expected.len() == 3) {
            prop_assert!(parsed.is_ok());
        } else {
            let errors = parsed.unwrap_err();
            prop_assert_eq!(codes(&errors), expected);
            let choice = "or include AccountKey or SharedAccessSignature in connection_string";
            let names_the_choice = |error: &FieldError| error.detail.contains(choice);
            prop_assert!(opens > 0 || errors.iter().all(names_the_choice));
        }
    }

    /// The token of one universe is requested in that universe only.
    #[test]
    fn token_uri_is_in_universe_of_key(mut file in key_files(), universe in "[a-z]{3,10}\\.(example|goog)") {
        let read = |file: &Value| {
            Sample { kind: CredentialType::Gcs, members: vec![("service_account_key", file.clone()), ("bucket", json!("b"))] }.parse()
        };
        file["universe_domain"] = json!(universe);
        for uri in [format!("https://oauth2.{universe}/token"), format!("https://{universe}/token")] {
            file["token_uri"] = json!(uri);
            prop_assert!(read(&file).is_ok(), "{}", uri);
        }
        for uri in [
            "https://oauth2.googleapis.com/token".to_owned(),
            format!("http://oauth2.{universe}/token"),
            format!("https://not{universe}/token"),
            format!("https://{universe}.other.example/token"),
            format!("https://other.example/{universe}"),
        ] {
            file["token_uri"] = json!(uri);
            let errors = read(&file).unwrap_err();
            prop_assert_eq!(codes(&errors), [("/data/service_account_key".to_owned(), FieldCode::Malformed)], "{}", uri);
            prop_assert!(errors[0].detail.contains("token_uri"));
        }
        for domain in [json!("https://universe.example"), json!("universe"), json!("a b.example"), json!("-a.example"), json!(1), json!(null)] {
            file["universe_domain"] = domain.clone();
            let errors = read(&file).unwrap_err();
            prop_assert!(errors[0].detail.contains("universe_domain"), "{}", domain);
        }
    }
}

#[test]
fn store_endpoint_may_start_with_bucket_name() {
    for (bucket, endpoint) in [
        ("minio", "https://minio.example.com:9000"),
        ("storage", "https://storage.googleapis.com"),
        ("s3", "https://project.supabase.example/storage/v1/s3"),
        ("backup", "http://backup.lan:9000"),
        ("daily", "https://daily-reports.store.example"),
    ] {
        assert!(s3(vec![("bucket", json!(bucket)), ("endpoint", json!(endpoint))]).parse().is_ok(), "{endpoint}");
    }
    let local = s3(vec![("bucket", json!("daily")), ("endpoint", json!("http://daily.localhost:9000"))]);
    assert_eq!(codes(&local.parse().unwrap_err()), [("/data/endpoint".to_owned(), FieldCode::NotAllowed)]);
}

#[test]
fn bucket_is_refused_when_it_is_an_arn() {
    for (arn, hint) in [
        ("arn:aws:s3:eu-west-1:111122223333:accesspoint/reports", "alias"),
        ("arn:aws:s3:eu-west-1:111122223333:accesspoint:reports", "alias"),
        ("arn:aws-cn:s3:cn-north-1:111122223333:accesspoint/reports", "alias"),
        ("arn:aws:s3-object-lambda:eu-west-1:111122223333:accesspoint/reports", "alias"),
        ("arn:aws:s3-outposts:eu-west-1:111122223333:outpost/op-1/accesspoint/reports", "alias"),
        ("arn:aws:s3::111122223333:accesspoint/mfzwi23gnjvgw.mrap", "multi-Region"),
        ("ARN:aws:s3:::daily-reports", ":::"),
    ] {
        let errors = s3(vec![("bucket", json!(arn))]).parse().unwrap_err();
        assert_eq!(codes(&errors), [("/data/bucket".to_owned(), FieldCode::Malformed)], "{arn}");
        assert!(errors[0].detail.contains(hint), "{arn}: {}", errors[0].detail);
    }
    for bucket in ["reports-hrzrlukc5m36ft7okagglf3gmwluquse1b-s3alias", "tenant:bucket", "arn:bucket"] {
        assert!(s3(vec![("bucket", json!(bucket))]).parse().is_ok(), "{bucket}");
    }
}

fn with_buckets(bucket: Value) -> Result<CredentialData, Vec<FieldError>> {
    let data =
        json!({"access_key_id": "AKIA2TESTONLY7SAMPLE", "secret_access_key": "k20fd9aQ/xk3lP0z", "bucket": bucket});
    let document = json::parse(data.to_string().as_bytes(), Limits::REQUEST).unwrap();
    CredentialData::parse(CredentialType::S3, document.root, "/data")
}

#[test]
fn wrong_bucket_of_a_list_is_refused_at_its_position() {
    let long: Vec<String> = (0..101).map(|number| format!("bucket-{number}")).collect();
    for (bucket, expected) in [
        (json!([]), ("/data/bucket", FieldCode::Blank)),
        (json!(["a", 1]), ("/data/bucket/1", FieldCode::WrongType)),
        (json!(["a", "b/c"]), ("/data/bucket/1", FieldCode::Malformed)),
        (json!(["a", "b", "a"]), ("/data/bucket/2", FieldCode::Malformed)),
        (json!(["a", "${BUCKET}"]), ("/data/bucket/1", FieldCode::Placeholder)),
        (json!(["a", "k20fd9aQ/xk3lP0z"]), ("/data/bucket/1", FieldCode::Malformed)),
        (json!(long), ("/data/bucket", FieldCode::TooLong)),
        (json!({"a": "b"}), ("/data/bucket", FieldCode::WrongType)),
    ] {
        let errors = with_buckets(bucket.clone()).unwrap_err();
        assert_eq!(codes(&errors), [(expected.0.to_owned(), expected.1)], "{bucket}");
    }
    let one = with_buckets(json!(["a"])).unwrap().to_canonical_json();
    assert_eq!(one.expose(), with_buckets(json!("a")).unwrap().to_canonical_json().expose());
}
