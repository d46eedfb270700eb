//! Tests of signing keys.

use super::*;
use crate::jwt::JwtVerifier;
use crate::testing::{NOW, entropy, id, instance_keyring, instance_keys, key_id};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use std::path::Path;
use vault_core::check::CheckReason;
use vault_core::digest::{Digest, DigestPurpose, RowMac};
use vault_core::federation::{
    FederationAudience, FederationClaims, FederationKey, FederationSubject, key_set_document,
};
use vault_core::id::{CredentialId, InstanceId, OrganizationId};
use vault_core::keyring::KeyringDocument;
use vault_core::port::{FederationSigningKey as _, FederationTokenSigner as _, KeyUse, TokenVerifier as _};

const KEYS: &str = include_str!("../../tests/vectors/rsa.txt");

/// Returns the PEM files whose name starts with `kind`.
fn files(kind: &str) -> Vec<(&'static str, &'static str)> {
    let sections = KEYS.split("== ").filter_map(|section| section.split_once('\n'));
    sections.filter(|(name, _)| name.starts_with(kind)).collect()
}

fn pem() -> SecretString {
    SecretString::from(files("accepted/2048")[0].1)
}

fn issuer() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

fn crypto(keys: &Arc<InstanceKeyring>) -> FederationCrypto {
    FederationCrypto::new(keys, entropy())
}

/// Returns the row of a key that `pem` contains.
fn stored(crypto: &FederationCrypto, number: u128, pem: &SecretString) -> StoredFederationKey {
    let (jwk, private_key) = crypto.sealer.import(key_id(number), pem).unwrap().expect("an accepted key");
    let key = FederationKey::new(key_id(number), issuer(), jwk, NOW);
    let mac = RowMac { key: key_id(1), code: Digest::from_bytes([0; 32]) };
    StoredFederationKey { key, private_key, mac, checked_at: None, failure: None }
}

fn claims() -> FederationClaims {
    let (organization, credential) = (OrganizationId::from_uuid(id(2)), CredentialId::from_uuid(id(3)));
    FederationClaims {
        issuer: issuer(),
        subject: FederationSubject::new(organization, credential),
        audience: FederationAudience::of_sts("https://sts.eu-central-1.amazonaws.com").unwrap(),
        now: NOW,
        id: id(4),
    }
}

/// The thumbprints are those of an independent implementation (openssl and Python).
#[test]
fn keys_of_2048_to_4096_bits_are_imported() {
    let crypto = crypto(&instance_keys(1));
    let expected = [
        ("accepted/2048", "_UpynRzizixzbXowJqy1Fpt9rYjRAOfIcoIKXrREyHM"),
        ("accepted/3072", "gKkQDBdcia7ZY6_GoLM7sPN97bpJNyn0W7PwAEmrlAY"),
        ("accepted/4096", "AZaKcevx_8jzatbVGBsO4_4TPe_2Sl0F-hTefb73CUU"),
    ];
    for ((name, pem), (expected_name, kid)) in files("accepted/").into_iter().zip(expected) {
        assert_eq!(name, expected_name);
        let row = stored(&crypto, 7, &pem.into());
        assert_eq!(row.key.jwk.kid(), kid);
        crypto.verifier.verify(&row).unwrap();
    }
}

#[test]
fn other_keys_are_refused() {
    let crypto = crypto(&instance_keys(1));
    let refused = |pem: &str| crypto.sealer.import(key_id(7), &pem.into()).unwrap().is_none();
    let files = files("refused/");
    assert_eq!(files.len(), 7);
    for (name, pem) in files {
        assert!(refused(pem), "{name}");
    }
    let accepted = pem();
    let accepted = accepted.expose_secret();
    for other in [
        "".to_owned(),
        format!("{accepted}{accepted}"),
        format!("Key of the vault\n{accepted}"),
        accepted.replacen("MII", "MIJ", 1),
        accepted.replace("-----END PRIVATE KEY-----", ""),
        "-----BEGIN PRIVATE KEY-----\n%%%\n-----END PRIVATE KEY-----\n".to_owned(),
    ] {
        assert!(refused(&other));
    }
    assert!(!refused(&accepted.replace('\n', "\r\n")));
}

#[tokio::test]
async fn tokens_verify_with_the_published_key_set() {
    let keys = instance_keys(1);
    let crypto = crypto(&keys);
    let signer = crypto.signers.signer(issuer());
    let refused = signer.sign(&claims()).await;
    assert!(matches!(refused, Err(CheckReason::FederationNotReady)), "there is no key yet");
    let mut tokens = Vec::new();
    for (number, (_, pem)) in (7..).zip(files("accepted/")) {
        let row = stored(&crypto, number, &pem.into());
        signer.select(Some(&row)).unwrap();
        let token = signer.sign(&claims()).await.unwrap();
        let header = token.expose_secret().split('.').next().unwrap();
        let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
        assert_eq!(header, json!({"alg": "RS256", "typ": "JWT", "kid": row.key.jwk.kid()}));
        let found = JwtVerifier.verify(&token, &key_set_document([&row.key.jwk]), KeyUse::Signature).unwrap();
        assert_eq!(found, serde_json::from_str::<Value>(&claims().to_json()).unwrap());
        tokens.push((row.key.jwk, token));
    }
    // A token does not verify with another key of the set.
    let (first, second) = (&tokens[0], &tokens[1]);
    assert!(JwtVerifier.verify(&first.1, &key_set_document([&second.0]), KeyUse::Signature).is_err());
    signer.select(None).unwrap();
    assert!(signer.sign(&claims()).await.is_err());
}

#[test]
fn private_keys_open_only_in_their_own_row() {
    let keys = instance_keys(1);
    let crypto = crypto(&keys);
    let (row, other) = (stored(&crypto, 7, &pem()), stored(&crypto, 8, &files("accepted/3072")[0].1.into()));
    let refused = |row: &StoredFederationKey| matches!(crypto.verifier.verify(row), Err(SealError::Integrity { .. }));
    assert!(!refused(&row) && !refused(&other));
    // Another public key, a private key of another row, and a copy under another ID.
    let public = FederationKey { jwk: other.key.jwk.clone(), ..row.key.clone() };
    assert!(refused(&StoredFederationKey { key: public, ..row.clone() }));
    assert!(refused(&StoredFederationKey { private_key: other.private_key, ..row.clone() }));
    assert!(refused(&StoredFederationKey { key: FederationKey { id: key_id(9), ..row.key.clone() }, ..row.clone() }));
    assert!(refused(&StoredFederationKey { private_key: Blob::from_bytes(vec![1, 1, 7]), ..row.clone() }));
    let foreign = instance_keyring(InstanceId::from_uuid(id(99)), 1);
    let foreign = FederationCrypto::new(&Arc::new(foreign), entropy());
    assert!(matches!(foreign.verifier.verify(&row), Err(SealError::Integrity { .. })), "another instance");
    let signer = crypto.signers.signer(issuer());
    assert!(signer.select(Some(&StoredFederationKey { key: other.key, ..row })).is_err());
}

#[test]
fn integrity_check_refuses_a_key_that_the_keyring_does_not_name() {
    let keys = instance_keys(1);
    let row = stored(&crypto(&keys), 7, &pem());
    let sealing = FederationSealing::new(Arc::clone(&keys));
    assert!(matches!(sealing.check(&row), Err(SealError::Integrity { .. })));
    let state = vault_core::federation::FederationKeyState::Retired;
    let retired = StoredFederationKey { key: FederationKey { state, ..row.key.clone() }, ..row };
    sealing.check(&retired).unwrap();
}

#[test]
fn keyring_names_added_keys_until_they_are_dropped() {
    let keys = instance_keys(1);
    let crypto = crypto(&keys);
    let active = keys.active();
    let first = keys.document().content;
    let record = |document: &KeyringDocument| InstanceRecord {
        id: keys.instance(),
        root_key: key_id(50),
        instance_key: active.id(),
        wrapped: Blob::from_bytes(Vec::new()),
        keyring: active.seal_document(&*entropy(), keys.instance(), document).unwrap(),
        created_at: NOW,
    };
    let change = |document: &KeyringDocument, added: &[KeyId], dropped: &[KeyId]| {
        let sealed = crypto.sealer.keyring(&record(document), added, dropped, NOW).unwrap();
        active.open_document(keys.instance(), &sealed).unwrap().content
    };
    let named = |document: &KeyringDocument| -> Vec<KeyId> {
        let terms = document.terms().iter().filter(|term| term.purpose == KeyPurpose::Federation);
        terms.map(|term| term.id).collect()
    };
    let (one, two) = (key_id(7), key_id(8));
    let with_one = change(&first, &[one], &[]);
    assert_eq!(named(&with_one), [one]);
    let both = change(&with_one, &[two, one], &[]);
    assert_eq!(named(&both), [one, two]);
    let rest = change(&both, &[], &[one, key_id(9)]);
    assert_eq!(named(&rest), [two]);
    let none = change(&rest, &[], &[two, one]);
    assert_eq!(named(&none), []);
    for purpose in KeyPurpose::SINGLE {
        assert_eq!(none.active(purpose), first.active(purpose));
    }
}

/// Stored formats never change: a row of this file must verify in every later version.
#[test]
fn stored_signing_key_format_is_pinned() {
    let file = std::fs::read_to_string(vectors()).unwrap();
    let value = |name: &str| {
        let line = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        hex::decode(line.unwrap()).unwrap()
    };
    let keys = instance_keys(1);
    let crypto = crypto(&keys);
    let private_key = Blob::from_bytes(value("private-key"));
    let row = StoredFederationKey { private_key, ..stored(&crypto, 7, &pem()) };
    crypto.verifier.verify(&row).unwrap();
    let mac = keys.active().code(DigestPurpose::FederationKey).unwrap().code_of_parts(&[b"one", b"two"]);
    assert_eq!(mac.as_slice(), value("mac"));
}

fn vectors() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/federation.txt")
}

/// Writes the file, once per version. Run manually.
#[test]
#[ignore = "writes the vectors of a new version"]
fn write() {
    assert!(!vectors().exists(), "committed vectors never change");
    let keys = instance_keys(1);
    let row = stored(&crypto(&keys), 7, &pem());
    let mac = keys.active().code(DigestPurpose::FederationKey).unwrap().code_of_parts(&[b"one", b"two"]);
    let lines = [("mac", mac.to_vec()), ("private-key", row.private_key.as_bytes().to_vec())];
    let lines: String = lines.iter().map(|(name, bytes)| format!("{name} {}\n", hex::encode(bytes))).collect();
    std::fs::write(vectors(), lines).unwrap();
}
