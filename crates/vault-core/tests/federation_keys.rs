//! Rules of signing keys, their documents, and publication checks.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use vault_core::entity::DocumentSecret;
use vault_core::federation::{
    FederationIssuer, FederationKey, FederationKeyError, FederationKeyState, Jwk, PublicationChecks,
    PublicationFailure, PublishedDocuments, SigningKeyChange, SigningKeys, check_publication, key_set_document,
};
use vault_core::time::Timestamp;

const HOUR: i64 = 60 * 60;

fn issuer() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

fn jwk(number: u128) -> Jwk {
    Jwk::new(format!("{number:043}"), "n".repeat(342)).unwrap()
}

fn key(issuer: FederationIssuer, number: u128, now: Timestamp) -> FederationKey {
    FederationKey::new(issuer, jwk(number), DocumentSecret::from(secrecy::SecretString::from("private")), now)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

/// A step in the life of a set of signing keys.
#[derive(Clone, Debug)]
enum Step {
    Add,
    Remove(Index),
    PromoteNow,
    /// The documents are published, or not, from now on.
    Publish(bool),
    /// A publication check.
    Check,
    /// Time passes, and then the due changes are made.
    Pass(i64),
    /// A restore, which keeps the keys that are not next.
    Restore,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seconds = prop_oneof![Just(60), Just(15 * 60), Just(HOUR), Just(24 * HOUR), 1..30 * HOUR];
    let step = prop_oneof![
        3 => Just(Step::Add),
        1 => any::<Index>().prop_map(Step::Remove),
        1 => Just(Step::PromoteNow),
        1 => any::<bool>().prop_map(Step::Publish),
        3 => Just(Step::Check),
        6 => seconds.prop_map(Step::Pass),
        1 => Just(Step::Restore),
    ];
    prop::collection::vec(step, 1..60)
}

/// A slow reference for what the rules must allow.
#[derive(Default)]
struct World {
    now: i64,
    keys: SigningKeys,
    checks: PublicationChecks,
    is_published: bool,
    /// Times at which checks found each key.
    found: Vec<(String, i64)>,
    added: u128,
}

impl World {
    fn change(&mut self, change: SigningKeyChange) -> Result<(), FederationKeyError> {
        let (after, actions) = self.keys.changed(&change, &self.checks, at(self.now))?;
        assert_eq!(actions.is_empty(), after == self.keys);
        for before in self.keys.all() {
            let after = after.all().iter().find(|after| after.kid() == before.kid());
            assert!(after.is_none_or(|after| after.state >= before.state), "a key does not return to an earlier state");
        }
        self.keys = after;
        Ok(())
    }

    fn run(&mut self, step: &Step) {
        let (before, issuer) = (self.keys.clone(), issuer());
        let next = before.next(&issuer).map(|key| key.kid().to_owned());
        match step {
            Step::Add => {
                self.added += 1;
                let key = key(issuer.clone(), self.added, at(self.now));
                match self.change(SigningKeyChange::Add(key)) {
                    Ok(()) => assert!(self.keys.all().iter().all(|key| key.state != FederationKeyState::Retired)),
                    Err(error) => assert_eq!(error, FederationKeyError::NextExists(next.unwrap())),
                }
            }
            Step::Remove(index) => {
                if before.all().is_empty() {
                    return;
                }
                let key = index.get(before.all());
                let kid = key.kid().to_owned();
                match self.change(SigningKeyChange::Remove { issuer, kid: kid.clone() }) {
                    Ok(()) => assert_ne!(key.state, FederationKeyState::Current),
                    Err(error) => assert_eq!(error, FederationKeyError::Current(kid)),
                }
            }
            Step::PromoteNow => match self.change(SigningKeyChange::Promote { issuer, is_forced: true }) {
                Ok(()) => assert!(next.is_some()),
                Err(error) => assert_eq!((error, next), (FederationKeyError::NoNext, None)),
            },
            Step::Publish(is_published) => self.is_published = *is_published,
            Step::Check => {
                let (keys, failure) = (self.keys.published(&issuer), PublicationFailure::KeyMissing);
                let finding = |_: &FederationKey| (!self.is_published).then_some(failure);
                self.checks = self.checks.after(self.keys.all(), &keys, finding, at(self.now));
                let found = keys.iter().filter(|_| self.is_published).map(|key| (key.kid().to_owned(), self.now));
                self.found.extend(found);
            }
            Step::Pass(seconds) => {
                self.now += seconds;
                self.advance();
            }
            Step::Restore => {
                let kept = before.all().iter().filter(|key| key.state != FederationKeyState::Next);
                self.change(SigningKeyChange::Keep(kept.map(|key| key.jwk.clone()).collect())).unwrap();
                assert_eq!(self.keys.next(&issuer), None);
            }
        }
    }

    fn advance(&mut self) {
        let (issuer, nothing_signs) = (issuer(), self.keys.signing(&issuer()).is_none());
        let Some(next) = self.keys.next(&issuer).map(|key| key.kid().to_owned()) else { return };
        if self.change(SigningKeyChange::Promote { issuer, is_forced: false }).is_err() {
            return;
        }
        let found: Vec<i64> = self.found.iter().filter(|(kid, _)| *kid == next).map(|(_, seconds)| *seconds).collect();
        let day = found.iter().min().is_some_and(|first| self.now - first >= 24 * HOUR);
        let recently = found.iter().max().is_some_and(|last| self.now - last <= 15 * 60);
        assert!((nothing_signs || day) && recently, "{next}");
    }
}

proptest! {
    /// After any steps, at most one key is next and one current. A replaced key stays in the set, which is published.
    #[test]
    fn each_state_has_one_key_after_any_steps(steps in steps()) {
        let (mut world, issuer) = (World::default(), issuer());
        for step in &steps {
            let signing = world.keys.signing(&issuer).cloned();
            world.run(step);
            for state in [FederationKeyState::Next, FederationKeyState::Current] {
                prop_assert!(world.keys.all().iter().filter(|key| key.state == state).count() <= 1, "{:?}", state);
            }
            let replaced = signing.filter(|before| {
                world.keys.signing(&issuer).is_some_and(|after| after.kid() != before.kid())
            });
            if let Some(replaced) = replaced {
                prop_assert!(world.keys.published(&issuer).iter().any(|key| key.kid() == replaced.kid()));
            }
        }
    }

    /// The check passes for our own documents, and finds each changed, missing, retired and foreign key.
    #[test]
    fn publication_check_finds_each_difference(published in 1..5_u128, missing: Index, extra in 0..3_usize) {
        let keys: Vec<Jwk> = (0..published).map(jwk).collect();
        let (retired, foreign) = (jwk(100), jwk(200));
        let required: Vec<&Jwk> = keys.iter().collect();
        let check = |set: &[&Jwk]| check_publication(&issuer(), &required, &[&retired], &documents(set));
        prop_assert_eq!(check(&required), []);
        let gap = missing.index(keys.len());
        let rest: Vec<&Jwk> = keys.iter().enumerate().filter(|(index, _)| *index != gap).map(|(_, key)| key).collect();
        prop_assert_eq!(check(&rest), [(PublicationFailure::KeyMissing, Some(keys[gap].kid().to_owned()))]);
        let (other, failure) = [
            (&retired, PublicationFailure::KeyRetired),
            (&foreign, PublicationFailure::UnknownKey),
            (&keys[gap], PublicationFailure::KeyMissing),
        ][extra];
        let with: Vec<&Jwk> = required.iter().copied().chain([other]).collect();
        if failure == PublicationFailure::KeyMissing {
            prop_assert_eq!(check(&with), [], "the same key twice is one key");
        } else {
            prop_assert_eq!(check(&with), [(failure, Some(other.kid().to_owned()))]);
        }
    }
}

fn documents(keys: &[&Jwk]) -> PublishedDocuments {
    PublishedDocuments {
        discovery: issuer().discovery_document().into_bytes(),
        key_set: key_set_document(keys.iter().copied()).into_bytes(),
        cache_control: Some("public, max-age=3600".to_owned()),
    }
}

#[test]
fn documents_have_the_fields_that_providers_read() {
    let discovery: Value = serde_json::from_str(&issuer().discovery_document()).unwrap();
    assert_eq!(
        discovery,
        json!({
            "issuer": "https://vault.example.com",
            "jwks_uri": "https://vault.example.com/federation/jwks.json",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "claims_supported": ["iss", "sub", "aud", "iat", "nbf", "exp", "jti"]
        })
    );
    let set: Value = serde_json::from_str(&key_set_document([&jwk(7)])).unwrap();
    let (kid, modulus) = (format!("{:043}", 7), "n".repeat(342));
    let key = json!({"kty": "RSA", "alg": "RS256", "use": "sig", "kid": kid, "n": modulus, "e": "AQAB"});
    assert_eq!(set, json!({"keys": [key]}));
    assert_eq!(key_set_document([]), r#"{"keys":[]}"#);
}

#[test]
fn publication_check_compares_issuer_and_caching() {
    let (own, key) = (issuer(), jwk(1));
    let failures = |documents: &PublishedDocuments| -> Vec<_> {
        check_publication(&own, &[&key], &[], documents).into_iter().map(|(failure, _)| failure).collect()
    };
    let good = documents(&[&key]);
    let discovery = |issuer: &str, keys: &str| PublishedDocuments {
        discovery: json!({"issuer": issuer, "jwks_uri": keys}).to_string().into_bytes(),
        ..good.clone()
    };
    assert_eq!(failures(&discovery("https://vault.example.com", "https://vault.example.com/other.json")), []);
    for (issuer, keys) in [
        ("https://vault.example.com/", "https://vault.example.com/federation/jwks.json"),
        ("https://vault.example.com", "https://vault.example.com.attacker.example/jwks.json"),
        ("https://vault.example.com", "https://cdn.example.com/federation/jwks.json"),
        ("https://vault.example.com", "http://vault.example.com/federation/jwks.json"),
    ] {
        assert_eq!(failures(&discovery(issuer, keys)), [PublicationFailure::IssuerDiffers], "{issuer} {keys}");
    }
    let cached = |header: &str| PublishedDocuments { cache_control: Some(header.to_owned()), ..good.clone() };
    assert_eq!(failures(&cached("private, No-Store")), [PublicationFailure::NotCacheable]);
    assert_eq!(failures(&PublishedDocuments { cache_control: None, ..good.clone() }), []);
    for bytes in [&b"<html>"[..], b"[]", b"{\"keys\": 7}"] {
        let broken = PublishedDocuments { key_set: bytes.to_vec(), ..good.clone() };
        assert_eq!(failures(&broken), [PublicationFailure::Unreachable]);
    }
    // A key with an additional field is not unchanged.
    let mut set: Value = serde_json::from_slice(&good.key_set).unwrap();
    set["keys"][0]["x5c"] = json!(["…"]);
    let altered = PublishedDocuments { key_set: set.to_string().into_bytes(), ..good };
    assert_eq!(failures(&altered), [PublicationFailure::KeyMissing, PublicationFailure::UnknownKey]);
}

#[test]
fn keys_of_another_issuer_do_not_sign() {
    let other = FederationIssuer::parse("https://other.example.com").unwrap();
    let changed = |keys: &SigningKeys, change| keys.changed(&change, &PublicationChecks::default(), at(0)).unwrap().0;
    let keys = changed(&SigningKeys::default(), SigningKeyChange::Add(key(other.clone(), 1, at(0))));
    let keys = changed(&keys, SigningKeyChange::Promote { issuer: other.clone(), is_forced: true });
    assert_eq!((keys.signing(&issuer()), keys.of(&issuer())), (None, Vec::new()));
    let promote = SigningKeyChange::Promote { issuer: issuer(), is_forced: true };
    let refused = keys.changed(&promote, &PublicationChecks::default(), at(0));
    assert_eq!(refused, Err(FederationKeyError::NoNext));
    let both = changed(&keys, SigningKeyChange::Add(key(issuer(), 1, at(0))));
    assert_eq!((both.of(&issuer()).len(), both.of(&other).len()), (1, 1));
}
