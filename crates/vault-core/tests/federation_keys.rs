//! Rules of signing keys, their documents, and publication checks.

use crate::support::digester::Hashes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use vault_core::digest::{Digest, RowMac};
use vault_core::federation::{
    FederationIssuer, FederationKey, FederationKeyError, FederationKeySet, FederationKeyState, Jwk, PublicationFailure,
    PublishedDocuments, StoredFederationKey, check_publication, key_set_document,
};
use vault_core::id::KeyId;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

const HOUR: i64 = 60 * 60;

fn issuer() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

fn id(number: u128) -> KeyId {
    KeyId::from_bytes(number.to_be_bytes())
}

fn jwk(number: u128) -> Jwk {
    Jwk::new(format!("{number:043}"), "n".repeat(342)).unwrap()
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
    /// The row of the current key is damaged.
    Damage,
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
        1 => Just(Step::Damage),
    ];
    prop::collection::vec(step, 1..60)
}

/// A slow reference for what the rules must allow.
#[derive(Default)]
struct World {
    now: i64,
    keys: Vec<FederationKey>,
    damaged: usize,
    is_published: bool,
    /// Time of the last check that found each key.
    found: Vec<(KeyId, i64)>,
    added: u128,
}

impl World {
    fn set(&self) -> FederationKeySet {
        FederationKeySet::new(&issuer(), self.keys.clone(), self.damaged == 0)
    }

    fn was_found(&self, key: &FederationKey) -> bool {
        self.found.iter().any(|(id, seconds)| *id == key.id && self.now - seconds <= 15 * 60)
    }

    fn apply(&mut self, changed: Vec<FederationKey>) {
        for after in changed {
            let before = self.keys.iter_mut().find(|key| key.id == after.id).unwrap();
            assert_eq!(after.version, before.version + 1);
            assert!(after.state >= before.state, "a key does not return to an earlier state");
            *before = after;
        }
    }

    fn some_key(&self, index: Index) -> Option<String> {
        (!self.keys.is_empty()).then(|| index.get(&self.keys).jwk.kid().to_owned())
    }

    fn run(&mut self, step: &Step) {
        let (set, now) = (self.set(), at(self.now));
        match step {
            Step::Add => {
                self.added += 1;
                match set.add(id(self.added), &issuer(), jwk(self.added), now) {
                    Ok(key) => {
                        self.keys.retain(|key| set.retired().all(|retired| retired.id != key.id));
                        self.keys.push(key);
                    }
                    Err(FederationKeyError::NextExists(kid)) => assert_eq!(set.next().unwrap().jwk.kid(), kid),
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Remove(index) => {
                let Some(kid) = self.some_key(*index) else { return };
                match set.remove(&kid) {
                    Ok(removed) => {
                        assert_ne!(removed.state, FederationKeyState::Current);
                        let removed = removed.id;
                        self.keys.retain(|key| key.id != removed);
                    }
                    Err(error) => assert_eq!(error, FederationKeyError::Current(kid)),
                }
            }
            Step::PromoteNow => match set.promote(|_| false, true, now) {
                Ok(changed) => self.apply(changed),
                Err(error) => assert_eq!((error, set.next()), (FederationKeyError::NoNext, None)),
            },
            Step::Publish(is_published) => self.is_published = *is_published,
            Step::Check if self.is_published => {
                let found: Vec<_> = set.keys().iter().map(|key| (key.id, self.now)).collect();
                let first = set.keys().iter().filter_map(|key| key.first_found(now)).collect();
                self.found.extend(found);
                self.apply(first);
            }
            Step::Check => {}
            Step::Pass(seconds) => {
                self.now += seconds;
                self.advance();
            }
            Step::Damage => {
                let before = self.keys.len();
                self.keys.retain(|key| key.state != FederationKeyState::Current);
                self.damaged += before - self.keys.len();
            }
        }
    }

    fn advance(&mut self) {
        let (set, now) = (self.set(), at(self.now));
        let Ok(changed) = set.promote(|key| self.was_found(key), false, now) else { return };
        let promoted = set.next().unwrap();
        let day = promoted.published_at.is_some_and(|since| now.millis_since(since) >= 24 * HOUR * 1_000);
        let nothing_signs = set.signing().is_none() && self.damaged == 0;
        assert!((nothing_signs || day) && self.was_found(promoted), "{promoted:?}");
        self.apply(changed);
    }
}

proptest! {
    /// After any steps, at most one key is next and one current. A replaced key stays in the set, which is published.
    #[test]
    fn each_state_has_one_key_after_any_steps(steps in steps()) {
        let mut world = World::default();
        for step in &steps {
            let signing = world.set().signing().cloned();
            world.run(step);
            let set = world.set();
            for state in [FederationKeyState::Next, FederationKeyState::Current] {
                prop_assert!(set.keys().iter().filter(|key| key.state == state).count() <= 1, "{:?}", state);
            }
            let replaced = signing.filter(|before| set.signing().is_some_and(|after| after.id != before.id));
            if let Some(replaced) = replaced {
                prop_assert!(set.retired().any(|key| key.id == replaced.id));
            }
        }
    }

    /// The MAC covers every field of the key.
    #[test]
    fn mac_covers_every_field(number in 1..9_u128, time in 1..9_i64, field in 0..9) {
        let key = FederationKey { active_at: Some(at(5)), ..FederationKey::new(id(1), issuer(), jwk(1), at(0)) };
        let row = StoredFederationKey {
            mac: key.sign(&Hashes),
            key: key.clone(),
            private_key: Blob::from_bytes(Vec::new()),
            checked_at: None,
            failure: None,
        };
        prop_assert!(row.mac_is_valid(&Hashes));
        let other = match field {
            0 => FederationKey { id: id(number + 1), ..key },
            1 => FederationKey { issuer: FederationIssuer::parse("https://other.example.com").unwrap(), ..key },
            2 => FederationKey { state: FederationKeyState::Current, ..key },
            3 => FederationKey { jwk: jwk(number + 1), ..key },
            4 => FederationKey { created_at: at(time), ..key },
            5 => FederationKey { published_at: Some(at(time)), ..key },
            6 => FederationKey { active_at: None, retired_at: key.active_at, ..key },
            7 => FederationKey { retired_at: Some(at(time)), ..key },
            _ => FederationKey { version: key.version + time, ..key },
        };
        let tampered = StoredFederationKey { key: other, ..row.clone() };
        prop_assert!(!tampered.mac_is_valid(&Hashes));
        let mac = RowMac { code: Digest::from_bytes([7; 32]), ..row.mac };
        let tampered = StoredFederationKey { mac, ..row.clone() };
        prop_assert!(!tampered.mac_is_valid(&Hashes));
        // The findings of checks grant nothing.
        let checked = StoredFederationKey { checked_at: Some(at(time)), failure: Some(PublicationFailure::UnknownKey), ..row };
        prop_assert!(checked.mac_is_valid(&Hashes));
    }

    /// A stored public key is parsed exactly as written, and no other text is accepted.
    #[test]
    fn public_keys_have_one_stored_form(kid in "[A-Za-z0-9_-]{43}", modulus in "[A-Za-z0-9_-]{342,683}", cut: Index) {
        let key = Jwk::new(kid, modulus).unwrap();
        let text = key.to_json();
        prop_assert_eq!(Jwk::parse_stored(&text), Some(key));
        let cut = cut.index(text.len());
        prop_assert_eq!(Jwk::parse_stored(&text[..cut]), None);
        prop_assert_eq!(Jwk::parse_stored(&format!("{} {}", &text[..cut], &text[cut..])), None);
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
fn newest_key_signs_after_restore() {
    let current = |number, seconds| FederationKey {
        state: FederationKeyState::Current,
        active_at: Some(at(seconds)),
        ..FederationKey::new(id(number), issuer(), jwk(number), at(0))
    };
    let set = FederationKeySet::new(&issuer(), [current(1, 10), current(2, 20), current(3, 15)], true);
    assert_eq!(set.signing().map(|key| key.id), Some(id(2)));
    let next = FederationKey { published_at: Some(at(0)), ..FederationKey::new(id(4), issuer(), jwk(4), at(0)) };
    let keys = set.keys().iter().cloned().chain([next]);
    let changed = FederationKeySet::new(&issuer(), keys, true).promote(|_| true, false, at(24 * HOUR)).unwrap();
    let states: Vec<_> = changed.iter().map(|key| (key.id, key.state)).collect();
    let expected = [
        (id(4), FederationKeyState::Current),
        (id(2), FederationKeyState::Retired),
        (id(3), FederationKeyState::Retired),
        (id(1), FederationKeyState::Retired),
    ];
    assert_eq!(states, expected);
}

#[test]
fn keys_of_another_issuer_do_not_sign() {
    let other = FederationIssuer::parse("https://other.example.com").unwrap();
    let key = FederationKey {
        state: FederationKeyState::Current,
        active_at: Some(at(0)),
        ..FederationKey::new(id(1), other, jwk(1), at(0))
    };
    let set = FederationKeySet::new(&issuer(), [key], true);
    assert_eq!((set.signing(), set.keys()), (None, &[][..]));
}
