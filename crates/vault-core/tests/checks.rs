//! Properties of checks without a storage provider, for all inputs.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::HashSet;
use vault_core::activation::{ActivationTtl, Purpose, VendMode, VendedForm, allows_short};
use vault_core::check::*;
use vault_core::credential::{CredentialData, CredentialType, Fingerprint};
use vault_core::time::Timestamp;

/// 2026-11-20T12:00:00Z.
const NOON: i64 = 1_795_176_000;

fn data(kind: CredentialType, json: &str) -> CredentialData {
    CredentialData::from_canonical_json(kind, json.as_bytes()).unwrap()
}

fn link(query: &str) -> CredentialData {
    data(CredentialType::DirectLink, &format!(r#"{{"url":"https://files.example/a?{query}"}}"#))
}

fn s3(more: &str) -> CredentialData {
    let bucket = if more.contains("\"bucket\"") { "" } else { r#","bucket":"b""# };
    let json = format!(r#"{{"access_key_id":"AKIA","secret_access_key":"s"{bucket}{more}}}"#);
    data(CredentialType::S3, &json)
}

const ROLE: &str = r#","role_arn":"arn:aws:iam::123456789012:role/batch""#;

fn azure(connection: &str) -> CredentialData {
    let json = format!(r#"{{"client_id":"c","client_secret":"s","connection_string":"{connection}","tenant_id":"t"}}"#);
    data(CredentialType::AzureIdentity, &json)
}

fn container(connection: &str) -> CredentialData {
    let json = format!(
        r#"{{"client_id":"c","client_secret":"s","connection_string":"{connection}","container":"nightly",
            "key_prefix":"in","tenant_id":"t"}}"#
    );
    data(CredentialType::AzureIdentity, &json)
}

fn gcs(more: &str) -> CredentialData {
    data(CredentialType::Gcs, &format!(r#"{{"bucket":"b","service_account_key":{{}}{more}}}"#))
}

fn seconds(at: i64) -> Timestamp {
    Timestamp::from_millis(at * 1000)
}

fn lifetime(data: &CredentialData, until: Option<i64>, now: i64) -> Option<CheckResult> {
    let report = verify_locally(data, until.map(seconds), seconds(now));
    let found: Vec<_> = report.checks.iter().filter(|check| check.kind == CheckKind::Lifetime).collect();
    assert!(found.len() <= 1);
    found.first().map(|check| check.result)
}

proptest! {
    #[test]
    fn activation_lasts_until_expiry(
        end in NOON - 100..NOON + 100,
        until in option::of(NOON - 150..NOON + 150),
        now in NOON - 150..NOON + 150,
        style in 0_usize..3,
    ) {
        let (data, expired) = match style {
            0 => (link(&format!("Expires={end}&Signature=x")), CheckReason::LinkExpired),
            1 => (link(&format!("X-Amz-Date=20261120T110000Z&X-Amz-Expires={}", end - NOON + 3600)), CheckReason::LinkExpired),
            _ => {
                let end = end - NOON;
                let (minute, second) = ((end + 120) / 60, (end + 120) % 60);
                // 11:58:00 plus this number of seconds.
                let (hour, minute) = if minute < 2 { (11, 58 + minute) } else { (12, minute - 2) };
                let end = format!("2026-11-20T{hour:02}%3A{minute:02}%3A{second:02}Z");
                let signature = format!("SharedAccessSignature=sv=2024-11-04&se={end}&sig=x");
                (azure(&format!("BlobEndpoint=https://acct.blob.core.windows.net;{signature}")), CheckReason::SecretExpired)
            }
        };
        let report = verify_locally(&data, until.map(seconds), seconds(now));
        let expected = if end <= now {
            CheckResult::Failed(expired)
        } else if until.is_some_and(|until| end < until) {
            CheckResult::Failed(CheckReason::ExpiresTooSoon)
        } else {
            CheckResult::Passed
        };
        prop_assert_eq!(lifetime(&data, until, now), Some(expected));
        prop_assert_eq!(report.is_usable(), expected == CheckResult::Passed);
        // No storage is requested for an expired credential, but for one that expires too soon it is.
        prop_assert_eq!(reach(&report) == StorageReach::Spare, end <= now);
    }

    #[test]
    fn activation_without_expiry_ignores_clock(until in option::of(any::<i32>()), now in any::<i32>()) {
        let (until, now) = (until.map(i64::from), i64::from(now));
        for data in [link("q=1"), s3(""), gcs(""), azure("AccountName=acct;AccountKey=c2VjcmV0")] {
            let passed = until.map(|_| CheckResult::Passed);
            prop_assert_eq!(lifetime(&data, until, now), passed);
        }
        let temporary = s3(r#","session_token":"t""#);
        let warned = until.map(|_| CheckResult::Warning(CheckReason::ExpiryUnknown));
        prop_assert_eq!(lifetime(&temporary, until, now), warned);
        prop_assert!(verify_locally(&temporary, until.map(seconds), seconds(now)).is_usable());
    }

    #[test]
    fn only_aws_s3_requires_region(region in any::<bool>(), endpoint in any::<bool>()) {
        let region_member = if region { r#","region":"eu-west-1""# } else { "" };
        let endpoint_member = if endpoint { r#""endpoint":"https://s3.example","# } else { "" };
        let json = format!(
            r#"{{"access_key_id":"AKIA","bucket":"b",{endpoint_member}"secret_access_key":"s"{region_member}}}"#
        );
        let report = verify_locally(&data(CredentialType::S3, &json), None, seconds(NOON));
        let expected = if region || endpoint {
            Check::passed(CheckKind::Settings)
        } else {
            Check::warning(CheckKind::Settings, CheckReason::RegionMissing)
        };
        prop_assert_eq!(report.checks, vec![expected]);
    }

    #[test]
    fn report_is_usable_unless_a_check_failed(results in vec((0_usize..4, select(CheckReason::ALL)), 0..6)) {
        let check = |(result, reason): (usize, CheckReason)| match result {
            0 => Check::passed(CheckKind::Authenticate),
            1 => Check::failed(CheckKind::Authenticate, reason),
            2 => Check::warning(CheckKind::LeastPrivilege, reason),
            _ => Check::skipped(CheckKind::Authenticate, reason),
        };
        let failed = results.iter().any(|(result, _)| *result == 1);
        let checks: Vec<_> = results.into_iter().map(check).collect();
        let (front, back) = checks.split_at(checks.len() / 2);
        let whole = CheckReport { checks: front.to_vec() }.and(CheckReport { checks: back.to_vec() });
        prop_assert_eq!(whole.is_usable(), !failed);
        prop_assert_eq!(whole.checks, checks);
    }

    #[test]
    fn operations_are_each_tried_once(texts in vec(select(vec!["list", "read", "write", "delete", "List"]), 0..6)) {
        let flawed: Vec<_> = (0..).zip(&texts).filter(|(_, text)| StorageOperation::parse(text).is_none()).collect();
        match StorageOperation::parse_all(&texts, "/operations") {
            Ok(operations) => {
                prop_assert!(flawed.is_empty());
                prop_assert!(operations.is_sorted_by(|a, b| a < b));
                prop_assert!(texts.iter().all(|text| operations.iter().any(|operation| operation.as_str() == *text)));
            }
            Err(errors) => {
                let places: Vec<_> = errors.into_iter().map(|error| error.pointer).collect();
                let expected: Vec<_> = flawed.iter().map(|(place, _)| format!("/operations/{place}")).collect();
                prop_assert_eq!(places, expected);
            }
        }
    }

    #[test]
    fn lifetime_of_an_activation_is_never_silently_changed(requested in option::of(prop_oneof![0_i64..50_000, any::<i64>()])) {
        match ActivationTtl::parse(requested) {
            Ok(ttl) => prop_assert_eq!(i64::from(ttl.as_seconds()), requested.unwrap_or(3_600)),
            Err(error) => {
                prop_assert!(!(60..=43_200).contains(&requested.unwrap()));
                prop_assert_eq!(error.pointer, "/ttl");
            }
        }
    }

    #[test]
    fn purpose_is_printable_and_unchanged(text in "\\PC{0,210}|[ -~]{0,210}|.{0,8}") {
        match Purpose::parse(&text, "/purpose") {
            Ok(purpose) => {
                prop_assert_eq!(purpose.as_str(), &text);
                prop_assert!((1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control));
            }
            Err(error) => {
                prop_assert_eq!(error.pointer, "/purpose");
                let plain = text.chars().all(|c| matches!(c, ' '..='~'));
                prop_assert!(!plain || text.trim().is_empty() || text.len() > 200);
            }
        }
    }
}

#[test]
fn short_lived_credentials_require_suitable_type_and_data() {
    assert_eq!(allows_short(&link("q=1")), Err(CheckReason::TypeHasNone));
    assert_eq!(allows_short(&s3("")), Err(CheckReason::NoRole));
    // Other stores issue sessions for the keys directly.
    for place in ["endpoint", "sts_endpoint"] {
        assert_eq!(allows_short(&s3(&format!(r#","{place}":"https://store.example""#))), Ok(()));
    }
    for data in [s3(ROLE), container("AccountName=acct"), gcs("")] {
        assert_eq!(allows_short(&data), Ok(()));
    }
    // Without a container or account name, only the application's token can be issued.
    assert_eq!(allows_short(&azure("AccountName=acct")), Err(CheckReason::NoContainer));
    let unidentified = data(
        CredentialType::AzureIdentity,
        r#"{"connection_string":"AccountName=acct;AccountKey=c2VjcmV0","container":"nightly"}"#,
    );
    assert_eq!(allows_short(&unidentified), Err(CheckReason::NoApplication));
    let unnamed = container("BlobEndpoint=https://files.example.com;SharedAccessSignature=sv=1&sig=x");
    assert_eq!(allows_short(&unnamed), Err(CheckReason::NoAccount));
}

/// Data that was saved before such endpoints were refused.
#[test]
fn settings_fail_when_the_endpoint_contains_the_bucket() {
    let settings = |more: &str| {
        let report = verify_locally(&s3(more), None, seconds(NOON));
        report.checks.into_iter().find(|check| check.kind == CheckKind::Settings).unwrap()
    };
    for endpoint in ["https://reports.ams3.store.example", "https://store.example/reports/"] {
        let wrong = settings(&format!(r#","bucket":"reports","endpoint":"{endpoint}""#));
        assert_eq!(wrong, Check::failed(CheckKind::Settings, CheckReason::EndpointHasBucket), "{endpoint}");
    }
    let right = settings(r#","bucket":"reports","endpoint":"https://ams3.store.example""#);
    assert_eq!(right, Check::passed(CheckKind::Settings));
}

/// The prefix `in` also covers `in2/a`, for every provider that compares the start of names.
#[test]
fn prefix_beyond_a_folder_is_reported_for_short_lived_credentials() {
    let warned = |data: &CredentialData| {
        let warning = Check::warning(CheckKind::LeastPrivilege, CheckReason::PrefixOpen);
        verify_locally(data, None, seconds(NOON)).checks.contains(&warning)
    };
    for (prefix, open) in [("in", true), ("a/in", true), ("in/", false)] {
        let prefix = format!(r#","key_prefix":"{prefix}""#);
        assert_eq!(warned(&s3(&[ROLE, &prefix].concat())), open, "{prefix}");
        assert_eq!(warned(&gcs(&prefix)), open, "{prefix}");
        assert!(!warned(&s3(&prefix)), "no short form, nothing to warn of");
    }
    for data in [s3(ROLE), gcs(""), container("AccountName=acct")] {
        assert!(!warned(&data));
    }
}

#[test]
fn names_are_unique_and_read_as_they_are_written() {
    let names: HashSet<_> = CheckReason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(names.len(), CheckReason::ALL.len());
    for reason in CheckReason::ALL {
        let remedy = reason.remedy();
        assert!(!remedy.contains('\n') && remedy.ends_with('.'), "{}", reason.as_str());
    }
    for mode in VendMode::ALL {
        assert_eq!(VendMode::parse(mode.as_str()), Some(mode));
    }
    for form in [VendedForm::Raw, VendedForm::Short] {
        assert_eq!(VendedForm::parse(form.as_str()), Some(form));
    }
    assert_eq!(VendMode::parse("RAW"), None);
    assert_eq!(VendMode::default(), VendMode::Raw);
}

proptest! {
    /// If a credential has several buckets, the report has the worst result of each kind, with the bucket.
    #[test]
    fn bucket_report_contains_worst_result_of_each(results in vec((0_usize..4, 0_usize..4), 1..6)) {
        let reason = CheckReason::Denied;
        let (first, second) = (CheckKind::Authenticate, CheckKind::Operation(StorageOperation::List));
        let make = |kind, rank| match rank {
            0 => Check::passed(kind),
            1 => Check::skipped(kind, reason),
            2 => Check::warning(kind, reason),
            _ => Check::failed(kind, reason),
        };
        let names: Vec<String> = (0..results.len()).map(|number| format!("b{number}")).collect();
        let reports = names.iter().zip(&results);
        let reports = reports.map(|(name, (one, two))| (&**name, vec![make(first, *one), make(second, *two)]));
        let report = CheckReport::of_buckets(reports);
        let worst = |of: fn(&(usize, usize)) -> usize, kind| {
            let rank = results.iter().map(of).max().unwrap();
            let bucket = names[results.iter().position(|result| of(result) == rank).unwrap()].clone();
            Check { bucket: (rank > 0).then_some(bucket), ..make(kind, rank) }
        };
        prop_assert_eq!(report.checks, vec![worst(|result| result.0, first), worst(|result| result.1, second)]);
    }

    /// A Google access boundary has ten rules, one for each bucket. The saved facts have the same result as the data.
    #[test]
    fn token_is_narrowed_to_ten_buckets_at_most(count in 1_usize..15) {
        let names: Vec<String> = (0..count).map(|number| format!("\"b{number}\"")).collect();
        let saved = data(CredentialType::Gcs, &format!(r#"{{"bucket":[{}],"service_account_key":{{}}}}"#, names.join(",")));
        let expected = if count > 10 { Err(CheckReason::TooManyBuckets) } else { Ok(()) };
        prop_assert_eq!(allows_short(&saved), expected);
        let shown = saved.information(Fingerprint::from_digest(&[0; 32]));
        prop_assert_eq!(shown.allows_short(CredentialType::Gcs), expected);
    }
}
