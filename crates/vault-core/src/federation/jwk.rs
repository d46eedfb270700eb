//! Public signing keys and the documents that publish them.

use super::FederationIssuer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// Public RSA key as the key set publishes it (RFC 7517), with exactly these fields: Google refuses others in an upload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Jwk {
    kid: String,
    modulus: String,
}

impl Jwk {
    /// Length of the key ID: a SHA-256 digest in base64url.
    pub const KID_LENGTH: usize = 43;
    /// Lengths of a modulus of 2,048 and 4,096 bits in base64url.
    const MODULUS_LENGTHS: [usize; 2] = [342, 683];

    /// Creates the public key with this modulus, big-endian in base64url without padding, and the exponent 65537. `kid`
    /// is its thumbprint (RFC 7638). Returns `None` if a value is malformed.
    pub fn new(kid: impl Into<String>, modulus: impl Into<String>) -> Option<Self> {
        let (kid, modulus) = (kid.into(), modulus.into());
        let [shortest, longest] = Self::MODULUS_LENGTHS;
        let has_length = (shortest..=longest).contains(&modulus.len());
        (Self::is_kid(&kid) && has_length && is_base64url(&modulus)).then_some(Self { kid, modulus })
    }

    /// Returns whether the text has the form of a key ID.
    pub fn is_kid(text: &str) -> bool {
        text.len() == Self::KID_LENGTH && is_base64url(text)
    }

    /// Returns the key ID.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns the modulus in base64url.
    pub fn modulus(&self) -> &str {
        &self.modulus
    }

    /// Returns the key as JSON.
    pub fn to_json(&self) -> String {
        let Self { kid, modulus } = self;
        // Both values are base64url, so they need no escaping.
        format!(r#"{{"kty":"RSA","alg":"RS256","use":"sig","kid":"{kid}","n":"{modulus}","e":"AQAB"}}"#)
    }

    /// Returns whether `published` is exactly this key.
    pub(super) fn is(&self, published: &Value) -> bool {
        let Self { kid, modulus } = self;
        *published == json!({"kty": "RSA", "alg": "RS256", "use": "sig", "kid": kid, "n": modulus, "e": "AQAB"})
    }
}

fn is_base64url(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

impl fmt::Display for Jwk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kid)
    }
}

impl FederationIssuer {
    /// Returns the discovery document (OpenID Connect Discovery 1.0, section 3).
    pub fn discovery_document(&self) -> String {
        let (issuer, key_set) = (self.as_str(), self.key_set_url());
        // An issuer contains no character that JSON escapes.
        format!(
            r#"{{"issuer":"{issuer}","jwks_uri":"{key_set}","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"],"claims_supported":["iss","sub","aud","iat","nbf","exp","jti"]}}"#
        )
    }
}

/// Returns the key set document (RFC 7517, section 5).
pub fn key_set_document<'a>(keys: impl IntoIterator<Item = &'a Jwk>) -> String {
    let keys: Vec<String> = keys.into_iter().map(Jwk::to_json).collect();
    format!(r#"{{"keys":[{}]}}"#, keys.join(","))
}
