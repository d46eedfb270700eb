//! Tests of signing keys.

use super::*;
use crate::jwt::JwtVerifier;
use crate::testing::{NOW, id};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_core::federation::{
    FederationAudience, FederationClaims, FederationIssuer, FederationKey, FederationSubject, key_set_document,
};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{
    FederationKeyImporter as _, FederationSigningKey as _, FederationTokenSigner as _, KeyUse, TokenVerifier as _,
};

const KEYS: &str = include_str!("../../tests/vectors/rsa.txt");

/// Returns the PEM files whose name starts with `kind`.
fn files(kind: &str) -> Vec<(&'static str, &'static str)> {
    let sections = KEYS.split("== ").filter_map(|section| section.split_once('\n'));
    sections.filter(|(name, _)| name.starts_with(kind)).collect()
}

fn issuer() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

fn imported(pem: &str) -> FederationKey {
    let (jwk, private_key) = FederationKeys.import(&pem.into()).expect("an accepted key");
    FederationKey::new(issuer(), jwk, private_key.into(), NOW)
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
    let expected = [
        ("accepted/2048", "_UpynRzizixzbXowJqy1Fpt9rYjRAOfIcoIKXrREyHM"),
        ("accepted/3072", "gKkQDBdcia7ZY6_GoLM7sPN97bpJNyn0W7PwAEmrlAY"),
        ("accepted/4096", "AZaKcevx_8jzatbVGBsO4_4TPe_2Sl0F-hTefb73CUU"),
    ];
    for ((name, pem), (expected_name, kid)) in files("accepted/").into_iter().zip(expected) {
        assert_eq!(name, expected_name);
        assert_eq!(imported(pem).kid(), kid);
    }
}

#[test]
fn other_keys_are_refused() {
    let refused = |pem: &str| FederationKeys.import(&pem.into()).is_none();
    let all = files("refused/");
    assert_eq!(all.len(), 7);
    for (name, pem) in all {
        assert!(refused(pem), "{name}");
    }
    let accepted = files("accepted/2048")[0].1;
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
    let signer = FederationSigner::new(issuer());
    let refused = signer.sign(&claims()).await;
    assert!(matches!(refused, Err(CheckReason::FederationNotReady)), "there is no key yet");
    let mut tokens = Vec::new();
    for (_, pem) in files("accepted/") {
        let key = imported(pem);
        signer.select(Some(&key));
        let token = signer.sign(&claims()).await.unwrap();
        let header = token.expose_secret().split('.').next().unwrap();
        let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
        assert_eq!(header, json!({"alg": "RS256", "typ": "JWT", "kid": key.kid()}));
        let found = JwtVerifier.verify(&token, &key_set_document([&key.jwk]), KeyUse::Signature).unwrap();
        assert_eq!(found, serde_json::from_str::<Value>(&claims().to_json()).unwrap());
        tokens.push((key.jwk, token));
    }
    // A token does not verify with another key of the set.
    let (first, second) = (&tokens[0], &tokens[1]);
    assert!(JwtVerifier.verify(&first.1, &key_set_document([&second.0]), KeyUse::Signature).is_err());
    signer.select(None);
    assert!(signer.sign(&claims()).await.is_err());
}
