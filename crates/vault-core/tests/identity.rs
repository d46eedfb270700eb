//! Workload identity: properties of trusts and of the rule that matches tokens with them.

use proptest::collection::btree_map;
use proptest::prelude::*;
use serde_json::{Value, json};
use vault_core::id::{IntegrationId, IssuerId, OrganizationId};
use vault_core::identity::{
    ClaimPattern, ClaimPointer, Issuer, IssuerName, KeySource, TokenTimes, Trust, TrustId, TrustRequest, Trusts,
    Workload, WorkloadRefusal, audience, integration_of, issuer_of_subject, match_trusts, verify_times,
};
use vault_core::time::Timestamp;

const OWN: IssuerId = IssuerId::from_bytes([7; 16]);
const TIMES: TokenTimes = TokenTimes { expires_at: 1_300, lifetime: 300 };

fn name(text: &str) -> IssuerName {
    IssuerName::parse(text, "").unwrap()
}

fn trust(claims: &Value) -> Trust {
    let request = TrustRequest::parse(&json!({"issuer": "own", "claims": claims}), "").unwrap();
    request.with_ids(TrustId::from_uuid(uuid::Uuid::from_u128(1)), OWN)
}

fn issuer(id: IssuerId, url: &str, organizations: Vec<OrganizationId>) -> Issuer {
    Issuer {
        id,
        name: name("own"),
        url: url.to_owned(),
        source: KeySource::Pasted,
        ca: String::new(),
        required: vec![ClaimPointer::parse("/repository_id", "").unwrap()],
        organizations,
        created_at: Timestamp::from_millis(0),
    }
}

/// Returns a workload with these claims of the issuer `own`.
fn workload(claims: &Value) -> Workload {
    Workload::new(&issuer(OWN, "https://issuer.example", Vec::new()), claims.clone())
}

fn trusts(claims: &[Value]) -> Trusts {
    Trusts::new(claims.iter().map(trust).collect(), "").unwrap()
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-z:/0-9]{1,12}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from)
    ]
}

proptest! {
    /// Any trusts round-trip.
    #[test]
    fn trusts_are_parsed_as_stored(claims in btree_map("/[a-z]{1,8}", scalar(), 0..10), sub in "[a-z/:]{1,20}") {
        let mut claims: serde_json::Map<_, _> = claims.into_iter().collect();
        claims.insert("/sub".to_owned(), sub.into());
        let all = trusts(&[Value::Object(claims)]);
        let document = serde_json::to_vec(&all).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Trusts>(&document).unwrap(), all);
    }

    /// A token matches a trust only if every claim is equal. The refusal names the claim that differs.
    #[test]
    fn every_claim_must_match(claims in btree_map("[a-z]{1,8}", scalar(), 1..6), sub in "[a-z/:]{1,20}", other in scalar()) {
        let mut claims_of_token: serde_json::Map<_, _> = claims.into_iter().filter(|(name, _)| name != "sub").collect();
        claims_of_token.insert("sub".to_owned(), sub.into());
        let asked: serde_json::Map<_, _> = claims_of_token.iter().map(|(name, value)| (format!("/{name}"), value.clone())).collect();
        let all = trusts(&[Value::Object(asked)]);
        let token = Value::Object(claims_of_token.clone());
        prop_assert!(match_trusts(&all, &workload(&token), TIMES).is_ok());
        // An issuer that was added later under the same name has another ID.
        let later = issuer(IssuerId::from_bytes([8; 16]), "https://issuer.example", Vec::new());
        prop_assert!(match_trusts(&all, &Workload::new(&later, token), TIMES).is_err());
        for changed in claims_of_token.keys() {
            let mut token = claims_of_token.clone();
            if token[changed] == other {
                continue;
            }
            token.insert(changed.clone(), other.clone());
            match match_trusts(&all, &workload(&Value::Object(token)), TIMES) {
                Err(WorkloadRefusal::NotTrusted(mismatch)) => prop_assert_eq!(mismatch.pointer, format!("/{changed}")),
                found => prop_assert!(false, "{:?}", found),
            }
        }
    }

    /// A prefix matches only longer values that start with it.
    #[test]
    fn prefix_matches_below_its_owner(owner in "[a-z]{1,6}", rest in "[a-z:/]{0,8}") {
        let pattern = ClaimPattern::parse(&json!(format!("repo:{owner}/etl:*")), "").unwrap();
        let (below, outside) = (format!("repo:{owner}/etl:{rest}"), format!("repo:{owner}x/etl:{rest}"));
        let fits = [json!(below), json!(outside), json!([below])].map(|value| pattern.fits(&value));
        prop_assert_eq!(fits, [!rest.is_empty(), false, false]);
    }

    /// A token is valid from its issue to its expiry, with a leeway of 30 s on either side.
    #[test]
    fn token_times_are_verified_by_server_clock(issued in 1_000_i64..2_000, life in 1_i64..600, now in 500_i64..3_000) {
        let claims = json!({"iat": issued, "nbf": issued, "exp": issued + life});
        let evaluated = verify_times(&claims, Timestamp::from_millis(now * 1_000));
        prop_assert_eq!(evaluated.is_ok(), now >= issued - 30 && now < issued + life + 30);
        if let Ok(times) = evaluated {
            prop_assert_eq!((times.expires_at, times.lifetime), (issued + life, life));
        }
    }

    /// An audience identifies one integration, in one spelling.
    #[test]
    fn audience_identifies_one_integration(bits in any::<u128>()) {
        let id = IntegrationId::from_uuid(uuid::Uuid::from_u128(bits));
        prop_assert_eq!(integration_of(&audience(id)), Some(id));
        for other in [audience(id).to_uppercase(), format!("{}/", audience(id)), id.to_string()] {
            prop_assert_eq!(integration_of(&other), None);
        }
    }
}

#[test]
fn overly_broad_wildcards_are_refused() {
    for wrong in [
        "*",
        "repo:*",
        "repo:acme*",
        "repo:acme/*etl*",
        "project_path:*",
        "system:serviceaccount:*",
        "spiffe://a/*",
        "a",
    ] {
        let parsed = ClaimPattern::parse(&json!(wrong), "");
        assert_eq!(parsed.is_ok(), wrong == "a", "{wrong}");
    }
    for right in ["repo:acme/*", "repo:acme/etl:*", "system:serviceaccount:etl:*", "spiffe://acme.example/ns/etl/*"] {
        assert!(ClaimPattern::parse(&json!(right), "").is_ok(), "{right}");
    }
    for wrong in [json!(null), json!([]), json!({}), json!("")] {
        assert!(ClaimPattern::parse(&wrong, "").is_err(), "{wrong}");
    }
}

#[test]
fn nearest_trust_names_mismatched_claim() {
    let all = trusts(&[
        json!({"/sub": "repo:acme/other:*", "/ref": "x"}),
        json!({"/sub": "repo:acme/etl:*", "/environment": "prod"}),
    ]);
    let token = json!({"sub": "repo:acme/etl:environment:test", "environment": "test\u{202e}"});
    let Err(WorkloadRefusal::NotTrusted(mismatch)) = match_trusts(&all, &workload(&token), TIMES) else { panic!() };
    assert_eq!((mismatch.pointer.as_str(), mismatch.found.as_deref()), ("/environment", Some("test\u{fffd}")));
    let refused = WorkloadRefusal::NotTrusted(mismatch);
    assert!(refused.cause().ends_with("the token is from issuer own, and the closest trust requires prod"));
    assert!(!refused.to_string().contains("prod"), "the trusted value is not disclosed to the sender");
    let nested = trusts(&[json!({"/sub": "a", "/kubernetes.io/namespace": "etl"})]);
    let token = json!({"sub": "a", "kubernetes.io": {"namespace": "etl"}});
    assert!(match_trusts(&nested, &workload(&token), TIMES).is_ok());
    let long = TokenTimes { lifetime: 3_601, ..TIMES };
    assert!(matches!(match_trusts(&nested, &workload(&token), long), Err(WorkloadRefusal::Time(_))));
}

#[test]
fn issuer_is_identified_by_url_or_trust_domain() {
    let issuer = |url: &str, organizations| issuer(OWN, url, organizations);
    let own = issuer("https://issuer.example", Vec::new());
    assert!(own.made(Some("https://issuer.example"), None));
    for other in ["https://issuer.example/", "https://issuer.example.evil", "HTTPS://issuer.example", ""] {
        assert!(!own.made(Some(other), Some("x")), "{other}");
    }
    assert!(!own.made(None, Some("spiffe://issuer.example/x")));
    let mesh = issuer("spiffe://acme.example", Vec::new());
    assert!(mesh.made(None, Some("spiffe://acme.example/ns/etl")));
    assert!(!mesh.made(Some("spiffe://acme.example"), Some("spiffe://acme.example.evil/ns/etl")));
    assert_eq!(issuer_of_subject("spiffe://acme.example"), None);
    let (one, two) = (OrganizationId::from_bytes([1; 16]), OrganizationId::from_bytes([2; 16]));
    assert!(
        own.serves(one) && issuer("https://a", vec![one]).serves(one) && !issuer("https://a", vec![one]).serves(two)
    );
    for (url, sound) in [
        ("https://issuer.example/realms/a", true),
        ("http://127.0.0.1:8080", true),
        ("http://localhost", true),
        ("spiffe://acme.example", true),
        ("http://issuer.example", false),
        ("https://user@issuer.example", false),
        ("https://issuer.example?a", false),
        ("spiffe://acme.example/ns", false),
        ("issuer.example", false),
    ] {
        assert_eq!(Issuer::check_url(url, "").is_ok(), sound, "{url}");
    }
    let pinned = |claims: Value| {
        let request = TrustRequest::parse(&json!({"issuer": "own", "claims": claims}), "").unwrap();
        request.satisfies(&own, "").is_ok()
    };
    assert!(pinned(json!({"/sub": "a", "/repository_id": "7"})));
    assert!(!pinned(json!({"/sub": "a"})) && !pinned(json!({"/sub": "a", "/repository_id": "acme/7:*"})));
}
