//! The signed assertion of a service account: a JSON Web Token (RFC 7523) with RS256.
//!
//! <https://developers.google.com/identity/protocols/oauth2/service-account#authorizingrequests>

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use vault_core::credential::{KeyFile, SecretText};
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Scope for all storage operations, as tools request it. The permissions of the account determine what is allowed.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Maximum lifetime of an assertion, and thus of the token, in seconds.
const LIFETIME: i64 = 3_600;

/// Signs an assertion for `audience`. Returns `None` if the key cannot sign.
pub(super) fn sign(key: &KeyFile, audience: &str, now: Timestamp) -> Option<Zeroizing<String>> {
    // The account's public name, and the key, which is used only for this signature.
    let issuer = key.member("client_email").map(SecretText::expose)?;
    let private = key_pair(key.member("private_key")?.expose())?;
    let head = json!({"alg": "RS256", "typ": "JWT", "kid": key.private_key_id()});
    let now = now.as_seconds();
    let claims =
        json!({"iss": issuer, "scope": SCOPE, "aud": audience, "iat": now, "exp": now.saturating_add(LIFETIME)});
    let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = [part(&head), part(&claims)].join(".");
    let mut signature = vec![0; private.public().modulus_len()];
    // The signature is deterministic. The randomness blinds the key against timing attacks.
    private.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).ok()?;
    Some(Zeroizing::new([signed, URL_SAFE_NO_PAD.encode(signature)].join(".")))
}

fn key_pair(pem: &str) -> Option<KeyPair> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()? {
        PrivateKeyDer::Pkcs8(der) => KeyPair::from_pkcs8(der.secret_pkcs8_der()).ok(),
        PrivateKeyDer::Pkcs1(der) => KeyPair::from_der(der.secret_pkcs1_der()).ok(),
        _ => None,
    }
}
