//! Rules of keyless access: who is named, who receives a token, and what lists and instructions show.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::collections::HashSet;
use url::Url;
use uuid::Uuid;
use vault_core::activation::{VendMode, VendRule, VendedForm, allows_short};
use vault_core::check::{CheckKind, CheckReason, CheckResult, verify_locally};
use vault_core::credential::{CredentialData, CredentialType, FieldClass, Fingerprint};
use vault_core::federation::{
    ClosedTrusts, FederationAudience, FederationClaims, FederationIssuer, FederationSubject, TrustTarget,
};
use vault_core::field::FieldCode;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::time::Timestamp;
use vault_core::{Error, ErrorKind};
use vault_testkit::strategy;

const KEYLESS: [CredentialType; 3] =
    [CredentialType::S3Federated, CredentialType::AzureFederated, CredentialType::GcsFederated];

fn organization(number: u128) -> OrganizationId {
    OrganizationId::from_uuid(Uuid::from_u128(number))
}

fn credential(number: u128) -> CredentialId {
    CredentialId::from_uuid(Uuid::from_u128(number))
}

fn issuer() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

fn parsed(kind: CredentialType, data: &Value) -> Result<CredentialData, Vec<(String, FieldCode)>> {
    CredentialData::from_json(kind, data.to_string().as_bytes()).map_err(|error| match error {
        Error::Invalid(violations) => violations.into_iter().map(|one| (one.pointer, one.code)).collect(),
        error => panic!("{error}"),
    })
}

fn s3(more: &[(&str, &str)]) -> Value {
    let mut data = json!({"role_arn": "arn:aws:iam::111122223333:role/nightly-import", "bucket": "nightly"});
    for (name, value) in more {
        data[*name] = (*value).into();
    }
    data
}

fn azure() -> Value {
    json!({"tenant_id": "contoso.onmicrosoft.com", "client_id": "8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a",
           "account_name": "acmeimports", "container": "nightly"})
}

fn google() -> Value {
    json!({"provider": "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/vault/providers/orgvault",
           "service_account": "nightly@acme-data.iam.gserviceaccount.com", "bucket": "nightly"})
}

/// The hosts of AWS STS, written as a list instead of a rule.
fn is_sts_of_aws(host: &str) -> bool {
    const REGIONS: [&str; 7] =
        ["eu-central-1", "us-east-1", "us-west-2", "us-gov-west-1", "cn-north-1", "ap-southeast-11", "eusc-de-east-1"];
    ["amazonaws.com", "amazonaws.com.cn"].into_iter().any(|domain| {
        host == format!("sts.{domain}")
            || REGIONS.into_iter().any(|region| {
                host == format!("sts.{region}.{domain}")
                    || host == format!("sts-fips.{region}.{domain}")
                    || host == format!("vpce-0a1b-2c.sts.{region}.vpce.{domain}")
            })
    })
}

/// Hosts near those of AWS STS.
fn hosts() -> impl Strategy<Value = String> {
    let first =
        select(vec!["", "sts.", "sts-fips.", "vpce-0a1b-2c.sts.", "s3.", "sts.s3.", "sts.elb.", "stsx.", "x.sts."]);
    let region = select(vec![
        "",
        "eu-central-1.",
        "us-gov-west-1.",
        "cn-north-1.",
        "s3.",
        "s3-eu-west-1.",
        "s3-website-us-east-1.",
        "elb.",
        "eu-central-1.elb.",
        "eu-central-1.vpce.",
        "execute-api.eu-central-1.",
        "eu_central-1.",
    ]);
    let domain = select(vec![
        "amazonaws.com",
        "amazonaws.com.cn",
        "amazonaws.com.",
        "amazonaws.com.evil.example",
        "amazonaws.co",
        "xamazonaws.com",
        "evil.example",
    ]);
    prop_oneof![
        4 => (first, region, domain).prop_map(|(first, region, domain)| [first, region, domain].concat()),
        1 => "[a-z.-]{1,20}\\.amazonaws\\.com",
        1 => "sts\\.[a-z0-9-]{1,16}\\.amazonaws\\.com",
    ]
}

proptest! {
    #[test]
    fn subjects_are_injective(ids in proptest::collection::hash_set((any::<u128>(), any::<u128>()), 2..20)) {
        let subject = |(one, other): &(u128, u128)| FederationSubject::new(organization(*one), credential(*other)).to_string();
        let subjects: HashSet<String> = ids.iter().map(subject).collect();
        prop_assert_eq!(subjects.len(), ids.len());
        prop_assert!(subjects.iter().all(|subject| subject.len() == 97));
    }

    #[test]
    fn issuers_are_canonical(issuer in strategy::federation_issuer(), other in "https?://[A-Za-z0-9.:/@?#%-]{0,30}") {
        prop_assert!(FederationIssuer::parse(&issuer).is_ok(), "{}", issuer);
        for text in [issuer, other] {
            let Ok(parsed) = FederationIssuer::parse(&text) else { continue };
            prop_assert_eq!(parsed.as_str(), &text);
            let url = Url::parse(&text).unwrap();
            prop_assert_eq!((url.scheme(), url.port(), url.query(), url.fragment()), ("https", None, None, None));
            prop_assert_eq!(url.host_str(), Some(parsed.host()));
            prop_assert!(text.len() <= FederationIssuer::MAX_LENGTH && !text.ends_with('/'));
            prop_assert!(parsed.key_set_url().starts_with(parsed.as_str()));
        }
    }

    #[test]
    fn only_hosts_of_aws_sts_get_its_audience(host in hosts(), port in select(vec!["", ":443", ":8443"]), scheme in select(vec!["https", "http"])) {
        let url = format!("{scheme}://{host}{port}");
        let Some(audience) = FederationAudience::of_sts(&url) else { return Ok(()) };
        prop_assert_eq!(scheme, "https");
        let is_sts = is_sts_of_aws(&host) && port != ":8443";
        // The list has not every Region.
        if audience.is_aws() && !is_sts {
            let region = host.split('.').nth(1).unwrap();
            prop_assert!(host.matches('.').count() <= 4 && !region.starts_with("s3") && region.matches('-').count() >= 2, "{}", host);
        } else {
            prop_assert_eq!(audience.is_aws(), is_sts, "{}", host);
        }
        if !audience.is_aws() {
            prop_assert_eq!(audience.as_str(), Url::parse(&url).unwrap().origin().ascii_serialization());
        }
    }

    /// Whatever an editor saves, a token for AWS is sent to AWS only, and its session is used at AWS only.
    #[test]
    fn saved_endpoint_cannot_redirect_aws_tokens_or_sessions(
        sts in proptest::option::of(hosts()),
        endpoint in proptest::option::of(prop_oneof![hosts(), "s3(-fips)?(\\.dualstack)?\\.eu-central-1\\.amazonaws\\.com(\\.cn)?"]),
        region in proptest::option::of("[a-z.]{1,4}-[a-z]{1,6}-[0-9]|[a-z.]{1,10}"),
        port in select(vec!["", ":8443"]),
    ) {
        let sts = sts.map(|host| format!("https://{host}{port}"));
        let endpoint = endpoint.map(|host| format!("https://{host}{port}"));
        let fields = [("sts_endpoint", &sts), ("endpoint", &endpoint), ("region", &region)];
        let set: Vec<_> = fields.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        // Stored data is not validated again, so the rule must also apply to it.
        let text = s3(&set).to_string();
        let stored = CredentialData::from_canonical_json(CredentialType::S3Federated, text.as_bytes()).unwrap();
        let CredentialData::S3Federated(data) = &stored else { unreachable!() };
        if let Some((recipient, audience)) = data.recipient() && audience.is_aws() {
            let host = Url::parse(&recipient).unwrap().host_str().unwrap().to_owned();
            prop_assert!(host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"));
            prop_assert!(!host.contains("s3"), "{}", host);
            if let Some(endpoint) = &endpoint {
                let host = Url::parse(endpoint).unwrap().host_str().unwrap().to_owned();
                prop_assert!(host.starts_with("s3") && host.contains("amazonaws.com") && port.is_empty(), "{}", endpoint);
            }
        }
        if parsed(CredentialType::S3Federated, &s3(&set)).is_ok() {
            prop_assert!(data.recipient().is_some());
        }
    }

    #[test]
    fn keyless_data_is_read_back_from_lists((kind, text) in strategy::credential_json()) {
        let data = CredentialData::from_json(kind, text.as_bytes()).unwrap();
        let information = data.information(Fingerprint::from_digest(&[7; 32]));
        let again = CredentialData::from_information(kind, &information);
        prop_assert_eq!(again.is_some(), kind.is_keyless());
        if let Some(again) = again {
            let (again, data) = (again.to_canonical_json(), data.to_canonical_json());
            prop_assert_eq!(again.expose(), data.expose());
            let shown: Value = serde_json::from_str(information.as_json()).unwrap();
            prop_assert_eq!(&shown["secrets"], &json!([]));
        }
    }

    #[test]
    fn keyless_credentials_are_issued_only_as_short_lived_ones((kind, text) in strategy::credential_json(), mode in select(VendMode::ALL.to_vec())) {
        let data = CredentialData::from_json(kind, text.as_bytes()).unwrap();
        let rule = VendRule::default_of(kind);
        prop_assert_eq!(kind.is_keyless(), KEYLESS.contains(&kind));
        prop_assert_eq!(kind.issued_as().issued_as(), kind.issued_as());
        if kind.is_keyless() {
            prop_assert_eq!(rule.limit(mode), VendMode::Short);
            prop_assert!(!rule.permits(VendedForm::Raw));
            prop_assert_eq!(allows_short(&data), Ok(()));
            prop_assert_eq!(data.information(Fingerprint::from_digest(&[0; 32])).allows_short(kind), Ok(()));
            prop_assert!(kind.fields().iter().all(|field| field.class == FieldClass::Location));
            prop_assert!(data.trust_target().is_some_and(|target| target.kind == kind));
        } else {
            prop_assert_eq!((kind.issued_as(), rule), (kind, VendRule::Any));
            prop_assert!(data.trust_target().is_none());
        }
    }

    #[test]
    fn every_keyless_credential_has_instructions((kind, text) in strategy::credential_json(), one in any::<u128>()) {
        let data = CredentialData::from_json(kind, text.as_bytes()).unwrap();
        let instructions = issuer().instructions(&data, organization(one), credential(one));
        prop_assert_eq!(instructions.is_some(), kind.is_keyless());
        if let Some(instructions) = instructions {
            let subject = FederationSubject::new(organization(one), credential(one));
            prop_assert_eq!(instructions.subject, subject);
            let texts: String = instructions.steps.iter().map(|step| step.text.as_str()).collect();
            prop_assert!(texts.contains(&subject.to_string()) && texts.contains("https://vault.example.com"));
            let check = format!("orgvault credential check {}", credential(one));
            prop_assert!(texts.ends_with(&check));
        }
    }
}

#[test]
fn issuer_is_an_https_url_with_a_host_name() {
    for text in
        ["https://vault.example.com", "https://vault", "https://a.example/vault/x_1", "https://xn--bcher-kva.example"]
    {
        assert_eq!(FederationIssuer::parse(text).map(|issuer| issuer.to_string()).as_deref(), Ok(text));
    }
    for text in [
        "",
        "vault.example.com",
        "http://vault.example.com",
        "HTTPS://vault.example.com",
        "https://Vault.example.com",
        "https://vault.example.com/",
        "https://vault.example.com:443",
        "https://vault.example.com:8443",
        "https://vault.example.com.",
        "https://user@vault.example.com",
        "https://vault.example.com?a",
        "https://vault.example.com#a",
        "https://vault.example.com/a/",
        "https://vault.example.com/a//b",
        "https://vault.example.com/a/../b",
        "https://vault.example.com/a b",
        "https://vault.example.com/a%20b",
        "https://vault.example.com/'",
        "https://192.0.2.1",
        "https://[2001:db8::1]",
        "https://b\u{fc}cher.example",
        " https://vault.example.com",
        &format!("https://vault.example.com/{}", "a".repeat(230)),
    ] {
        assert!(FederationIssuer::parse(text).is_err(), "{text}");
    }
    let issuer = FederationIssuer::parse("https://a.example/vault").unwrap();
    assert_eq!((issuer.host(), issuer.without_scheme()), ("a.example", "a.example/vault"));
    assert_eq!(issuer.discovery_url(), "https://a.example/vault/.well-known/openid-configuration");
    assert_eq!(issuer.key_set_url(), "https://a.example/vault/federation/jwks.json");
}

#[test]
fn audience_follows_from_the_recipient() {
    for (url, audience) in [
        ("https://sts.amazonaws.com", "sts.amazonaws.com"),
        ("https://sts.eu-central-1.amazonaws.com", "sts.amazonaws.com"),
        ("https://STS.eu-central-1.amazonaws.com:443/", "sts.amazonaws.com"),
        ("https://sts-fips.us-gov-west-1.amazonaws.com", "sts.amazonaws.com"),
        ("https://vpce-0a1b-2c.sts.eu-central-1.vpce.amazonaws.com", "sts.amazonaws.com"),
        ("https://sts.cn-north-1.amazonaws.com.cn", "sts.amazonaws.com.cn"),
        ("https://store.example.com:9000", "https://store.example.com:9000"),
        ("https://b\u{fc}cher.example", "https://xn--bcher-kva.example"),
        ("https://[2001:db8::1]:9000", "https://[2001:db8::1]:9000"),
        // Of customers: a load balancer, an API, and a bucket with the name sts.
        ("https://sts-1.eu-central-1.elb.amazonaws.com", "https://sts-1.eu-central-1.elb.amazonaws.com"),
        ("https://sts.execute-api.eu-central-1.amazonaws.com", "https://sts.execute-api.eu-central-1.amazonaws.com"),
        ("https://sts.s3.amazonaws.com", "https://sts.s3.amazonaws.com"),
        ("https://sts.s3-eu-west-1.amazonaws.com", "https://sts.s3-eu-west-1.amazonaws.com"),
        ("https://sts.amazonaws.com.evil.example", "https://sts.amazonaws.com.evil.example"),
        ("https://sts.amazonaws.com:8443", "https://sts.amazonaws.com:8443"),
    ] {
        assert_eq!(FederationAudience::of_sts(url).unwrap().as_str(), audience, "{url}");
    }
    // A path would send the token to another application of the same origin.
    for url in [
        "https://store.example.com:9000/sts",
        "http://sts.amazonaws.com",
        "ftp://store.example",
        "sts.amazonaws.com",
        "",
    ] {
        assert_eq!(FederationAudience::of_sts(url), None, "{url}");
    }
    let of = |kind, data: &Value| parsed(kind, data).unwrap().trust_target().unwrap();
    let google = of(CredentialType::GcsFederated, &google());
    assert_eq!(google.recipient, "https://sts.googleapis.com");
    assert_eq!(
        google.audience.as_str(),
        "https://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/vault/providers/orgvault"
    );
    for (cloud, recipient, audience) in [
        (None, "https://login.microsoftonline.com/contoso.onmicrosoft.com", "api://AzureADTokenExchange"),
        (Some("public"), "https://login.microsoftonline.com/contoso.onmicrosoft.com", "api://AzureADTokenExchange"),
        (Some("china"), "https://login.chinacloudapi.cn/contoso.onmicrosoft.com", "api://AzureADTokenExchangeChina"),
        (
            Some("us-government"),
            "https://login.microsoftonline.us/contoso.onmicrosoft.com",
            "api://AzureADTokenExchangeUSGov",
        ),
    ] {
        let mut data = azure();
        if let Some(cloud) = cloud {
            data["cloud"] = cloud.into();
        }
        let target = of(CredentialType::AzureFederated, &data);
        assert_eq!((target.recipient.as_str(), target.audience.as_str()), (recipient, audience));
    }
}

#[test]
fn s3_endpoints_are_https_and_of_aws_if_aws_issues_the_session() {
    for endpoint in [
        "https://s3.amazonaws.com",
        "https://s3-accelerate.amazonaws.com",
        "https://s3.eu-central-1.amazonaws.com",
        "https://s3-fips.us-gov-west-1.amazonaws.com",
        "https://s3.dualstack.eu-central-1.amazonaws.com",
        "https://s3-fips.dualstack.us-east-1.amazonaws.com",
        "https://s3.cn-north-1.amazonaws.com.cn",
        "https://store.example:9000",
    ] {
        assert!(parsed(CredentialType::S3Federated, &s3(&[("endpoint", endpoint)])).is_ok(), "{endpoint}");
    }
    let refused = |fields: &[(&str, &str)]| parsed(CredentialType::S3Federated, &s3(fields)).unwrap_err();
    let at = |name: &str| vec![(format!("/{name}"), FieldCode::NotAllowed)];
    for endpoint in [
        "http://store.example",
        "https://store.example/sts",
        "https://store.example.",
        "https://s3.amazonaws.com.",
        "https://s3.eu-central-1.amazonaws.com:8443",
        "https://x.s3.eu-central-1.amazonaws.com",
        "https://lb-1.eu-central-1.elb.amazonaws.com",
        "https://s3.elb.amazonaws.com",
    ] {
        assert_eq!(refused(&[("endpoint", endpoint)]), at("endpoint"), "{endpoint}");
    }
    let aws = ("sts_endpoint", "https://sts.eu-central-1.amazonaws.com");
    assert_eq!(refused(&[aws, ("endpoint", "https://store.example")]), at("endpoint"));
    for sts in ["http://sts.amazonaws.com", "https://sts.amazonaws.com.", "https://sts.store.example/other"] {
        assert_eq!(refused(&[("sts_endpoint", sts)]), at("sts_endpoint"), "{sts}");
    }
    let own = ("sts_endpoint", "https://sts.store.example");
    assert!(parsed(CredentialType::S3Federated, &s3(&[own, ("endpoint", "https://store.example/s3")])).is_ok());
}

#[test]
fn keyless_data_has_no_unknown_fields_and_limits() {
    let mut data = azure();
    data["client_secret"] = "kb7Q~vN3wYk2rT0sLzUaHbJ5cD7eF9gMoPqR".into();
    let violations = parsed(CredentialType::AzureFederated, &data).unwrap_err();
    assert_eq!(violations, [("/client_secret".to_owned(), FieldCode::Unknown)]);
    let mut data = azure();
    data["cloud"] = "germany".into();
    assert_eq!(
        parsed(CredentialType::AzureFederated, &data).unwrap_err(),
        [("/cloud".to_owned(), FieldCode::OutOfRange)]
    );
    let mut data = google();
    data["bucket"] = (0..11).map(|number| format!("bucket-{number}")).collect();
    assert_eq!(parsed(CredentialType::GcsFederated, &data).unwrap_err(), [("/bucket".to_owned(), FieldCode::TooLong)]);
    for kind in KEYLESS {
        let Err(error) = CredentialData::from_json(kind, b"{}") else { panic!("{kind}") };
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

#[test]
fn open_prefixes_of_keyless_credentials_get_a_warning() {
    let now = Timestamp::from_millis(0);
    let warns = |data: &CredentialData| {
        let checks = verify_locally(data, None, now).checks;
        checks.iter().any(|check| {
            check.kind == CheckKind::LeastPrivilege && check.result == CheckResult::Warning(CheckReason::PrefixOpen)
        })
    };
    let mut data = google();
    data["key_prefix"] = "in".into();
    assert!(warns(&parsed(CredentialType::GcsFederated, &data).unwrap()));
    assert!(warns(&parsed(CredentialType::S3Federated, &s3(&[("key_prefix", "in")])).unwrap()));
    assert!(!warns(&parsed(CredentialType::S3Federated, &s3(&[("key_prefix", "in/")])).unwrap()));
    let mut data = azure();
    data["key_prefix"] = "in".into();
    assert!(!warns(&parsed(CredentialType::AzureFederated, &data).unwrap()));
}

/// A trust that is bound to another claim would accept every organization.
#[test]
fn claims_have_the_documented_names_and_times() {
    let claims = FederationClaims {
        issuer: issuer(),
        subject: FederationSubject::new(organization(1), credential(2)),
        audience: FederationAudience::of_sts("https://sts.eu-central-1.amazonaws.com").unwrap(),
        now: Timestamp::from_millis(1_800_000_000_999),
        id: Uuid::from_u128(3),
    };
    let id = |number: u128| Uuid::from_u128(number).to_string();
    let expected = json!({
        "iss": "https://vault.example.com", "sub": format!("organization:{}:credential:{}", id(1), id(2)),
        "aud": "sts.amazonaws.com", "iat": 1_799_999_970, "nbf": 1_799_999_970, "exp": 1_800_000_300, "jti": id(3),
    });
    assert_eq!(serde_json::from_str::<Value>(&claims.to_json()).unwrap(), expected);
}

#[test]
fn aws_steps_contain_command_and_policy() {
    let data = parsed(CredentialType::S3Federated, &s3(&[("region", "eu-central-1")])).unwrap();
    let (organization, credential) = (organization(1), credential(2));
    let instructions = issuer().instructions(&data, organization, credential).unwrap();
    let steps: Vec<_> = instructions.steps.iter().map(|step| (step.title.as_str(), step.language)).collect();
    assert_eq!(
        steps,
        [
            ("Register the issuer in the AWS account, once for all credentials", "sh"),
            ("Set this trust policy on role nightly-import", "json"),
            ("Check the credential", "sh"),
        ]
    );
    assert_eq!(
        instructions.steps[0].text,
        "aws iam create-open-id-connect-provider --url 'https://vault.example.com' --client-id-list 'sts.amazonaws.com'"
    );
    let policy: Value = serde_json::from_str(&instructions.steps[1].text).unwrap();
    let expected = json!({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow",
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": "arn:aws:iam::111122223333:oidc-provider/vault.example.com"},
        "Condition": {"StringEquals": {
            "vault.example.com:aud": "sts.amazonaws.com",
            "vault.example.com:sub": format!("organization:{organization}:credential:{credential}"),
        }},
    }]});
    assert_eq!(policy, expected);
}

#[test]
fn steps_for_other_providers_contain_whole_subject() {
    let (organization, credential) = (organization(1), credential(2));
    let texts = |kind, data: &Value| -> Vec<String> {
        let instructions = issuer().instructions(&parsed(kind, data).unwrap(), organization, credential).unwrap();
        instructions.steps.into_iter().map(|step| step.text).collect()
    };
    let subject = format!("organization:{organization}:credential:{credential}");
    let azure = texts(CredentialType::AzureFederated, &azure());
    let parameters: Value = serde_json::from_str(&azure[0]).unwrap();
    assert_eq!(
        (&parameters["issuer"], &parameters["subject"], &parameters["audiences"]),
        (&json!("https://vault.example.com"), &json!(subject), &json!(["api://AzureADTokenExchange"]))
    );
    assert!(azure[1].contains("az ad app federated-credential create --id '8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a'"));
    assert!(azure[2].contains("Storage Blob Delegator") && azure[3].contains("Storage Blob Data Contributor"));
    let google = texts(CredentialType::GcsFederated, &google());
    assert!(google[0].contains("--attribute-mapping=google.subject=assertion.sub"), "{}", google[0]);
    assert!(google[0].contains(&format!("startsWith(\"organization:{organization}:\")'")), "{}", google[0]);
    assert!(google[1].contains("roles/iam.workloadIdentityUser"), "{}", google[1]);
    assert!(google[1].ends_with(&format!(
        "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/vault/subject/{subject}'"
    )));
    let store = texts(CredentialType::S3Federated, &s3(&[("endpoint", "https://store.example:9000")]));
    assert!(store[0].contains(&subject) && store[0].contains("https://store.example:9000"), "{}", store[0]);
}

fn target(number: usize) -> TrustTarget {
    TrustTarget {
        kind: CredentialType::S3Federated,
        recipient: "https://sts.amazonaws.com".to_owned(),
        audience: FederationAudience::of_sts("https://sts.amazonaws.com").unwrap(),
        identity: format!("arn:aws:iam::111122223333:role/{number}"),
    }
}

#[test]
fn closed_trusts_are_valid_for_an_hour() {
    let closed = ClosedTrusts::default();
    let now = Timestamp::from_millis(1_800_000_000_000);
    assert!(!closed.contains(&target(1), now));
    closed.insert(target(1), now);
    assert!(closed.contains(&target(1), now) && closed.contains(&target(1), now.plus_seconds(3_599)));
    assert!(!closed.contains(&target(1), now.plus_seconds(3_600)));
    assert!(!closed.contains(&target(1), now.plus_seconds(-1)), "the clock was moved back");
    assert!(!closed.contains(&target(2), now));
    for other in [
        TrustTarget { kind: CredentialType::GcsFederated, ..target(1) },
        TrustTarget { recipient: "https://sts.eu-central-1.amazonaws.com".to_owned(), ..target(1) },
        TrustTarget { audience: FederationAudience::of_sts("https://store.example").unwrap(), ..target(1) },
    ] {
        assert!(!closed.contains(&other, now));
    }
    closed.remove(&target(1));
    assert!(!closed.contains(&target(1), now));
}

#[test]
fn closed_trusts_are_limited_and_oldest_is_evicted() {
    let closed = ClosedTrusts::default();
    let start = Timestamp::from_millis(1_800_000_000_000);
    let at = |number: usize| Timestamp::from_millis(start.as_millis() + i64::try_from(number).unwrap());
    for number in 0..=ClosedTrusts::MAX {
        closed.insert(target(number), at(number));
    }
    let now = at(ClosedTrusts::MAX);
    assert!(!closed.contains(&target(0), now) && closed.contains(&target(1), now));
    assert!(closed.contains(&target(ClosedTrusts::MAX), now));
}
