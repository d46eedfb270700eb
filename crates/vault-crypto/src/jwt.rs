//! Parser and verifier of JSON Web Tokens of workloads (RFC 7515, 7517, 7518, 8037, 8725).
//!
//! Only listed algorithms are permitted: five public-key algorithms, each with its own kind of key. A token cannot
//! specify the location of keys: `jku`, `jwk`, `x5u` and `x5c` are ignored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};
use vault_core::json::{self, Limits};
use vault_core::port::{KeyCount, KeyUse, SignatureError, TokenVerifier, UnverifiedToken};

/// Maximum length of a token, in bytes.
const MAX_TOKEN: usize = 8 * 1024;
/// Maximum size of a key set, in bytes.
const MAX_KEY_SET: usize = 1024 * 1024;
/// Maximum number of keys in a set.
const MAX_KEYS: usize = 100;
/// Length of an RSA modulus of 2,048 bits, in bytes.
const MIN_MODULUS: usize = 256;

/// Verifier of identity tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct JwtVerifier;

/// Signature algorithm of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "RS256" => Self::Rs256,
            "PS256" => Self::Ps256,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" => Self::EdDsa,
            _ => return None,
        })
    }

    /// Returns whether a key of this kind can verify it.
    fn fits(self, kind: &KeyKind) -> bool {
        matches!(
            (self, kind),
            (Self::Rs256 | Self::Ps256, KeyKind::Rsa { .. })
                | (Self::Es256, KeyKind::P256(_))
                | (Self::Es384, KeyKind::P384(_))
                | (Self::EdDsa, KeyKind::Ed25519(_))
        )
    }
}

/// A public key.
enum KeyKind {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

struct PublicKey {
    id: Option<String>,
    /// The only algorithm for which it may be used, if specified.
    algorithm: Option<Algorithm>,
    kind: KeyKind,
}

/// A key in a set (RFC 7517), without unused members.
#[derive(Deserialize)]
struct JsonWebKey {
    kty: String,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct JsonWebKeySet {
    keys: Vec<Value>,
}

/// The decoded parts of a token.
struct Parts {
    header: Map<String, Value>,
    claims: Value,
    signature: Vec<u8>,
    /// Number of signed bytes of the text.
    signed: usize,
}

impl Parts {
    fn read(token: &str) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.').filter(|(_, claims)| !claims.contains('.'))?;
        let Value::Object(header) = json_part(header)? else { return None };
        let claims = json_part(claims).filter(Value::is_object)?;
        Some(Self { header, claims, signature: decode(signature)?, signed: signed.len() })
    }

    /// Returns the algorithm, unless the header requires an unsupported feature.
    fn algorithm(&self) -> Option<Algorithm> {
        // A critical extension (RFC 7515, 4.1.11), or an unencoded or compressed payload.
        if ["crit", "b64", "zip"].iter().any(|name| self.header.contains_key(*name)) {
            return None;
        }
        Algorithm::parse(self.header.get("alg")?.as_str()?)
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Parses the JSON of a part. A repeated member makes it ambiguous (RFC 7515, 4; RFC 7519, 4), so it is rejected.
fn json_part(text: &str) -> Option<Value> {
    let bytes = decode(text)?;
    let document = json::parse(&bytes, Limits::REQUEST).ok()?;
    if !document.duplicates.is_empty() {
        return None;
    }
    serde_json::from_slice(&bytes).ok()
}

impl TokenVerifier for JwtVerifier {
    fn read_unverified(&self, token: &SecretString) -> Option<UnverifiedToken> {
        let parts = Parts::read(token.expose_secret())?;
        let text = |name: &str| parts.claims.get(name).and_then(Value::as_str).map(str::to_owned);
        let audience = match parts.claims.get("aud") {
            Some(Value::String(audience)) => Some(audience.clone()),
            Some(Value::Array(audiences)) => match audiences.as_slice() {
                [Value::String(audience)] => Some(audience.clone()),
                _ => None,
            },
            _ => None,
        };
        Some(UnverifiedToken { issuer: text("iss"), subject: text("sub"), audience })
    }

    fn verify(&self, token: &SecretString, keys: &str, key_use: KeyUse) -> Result<Value, SignatureError> {
        let text = token.expose_secret(); // to verify its signature
        let parts = Parts::read(text).ok_or(SignatureError::Wrong)?;
        let algorithm = parts.algorithm().ok_or(SignatureError::Wrong)?;
        let id = match parts.header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.as_str()),
            Some(_) => return Err(SignatureError::Wrong),
        };
        let keys: Vec<_> = key_set(keys, key_use).into_iter().flatten().flatten().collect();
        let mut fitting = keys.iter().filter(|key| {
            id.is_none_or(|id| key.id.as_deref() == Some(id))
                && algorithm.fits(&key.kind)
                && key.algorithm.is_none_or(|only| only == algorithm)
        });
        let mut known = false;
        let signed = text.as_bytes().get(..parts.signed).unwrap_or_default();
        let is_genuine = fitting.any(|key| {
            known = true;
            key.kind.has_signed(algorithm, signed, &parts.signature)
        });
        match (is_genuine, known) {
            (true, _) => Ok(parts.claims),
            (false, true) => Err(SignatureError::Wrong),
            (false, false) => Err(SignatureError::UnknownKey),
        }
    }

    fn count_keys(&self, keys: &str, key_use: KeyUse) -> Option<KeyCount> {
        let mut count = KeyCount::default();
        for key in key_set(keys, key_use)? {
            match key {
                Ok(_) => count.usable += 1,
                Err(reason) => *count.others.entry(reason).or_default() += 1,
            }
        }
        Some(count)
    }
}

/// Returns the keys of a set and, for each that cannot verify a token, the reason in fixed words.
fn key_set(text: &str, key_use: KeyUse) -> Option<Vec<Result<PublicKey, &'static str>>> {
    if text.len() > MAX_KEY_SET {
        return None;
    }
    let set: JsonWebKeySet = serde_json::from_str(text).ok()?;
    if set.keys.len() > MAX_KEYS {
        return None;
    }
    let has_use = |key: &Value| key.get("use").is_some_and(|usage| !usage.is_null());
    let any_use = set.keys.iter().any(has_use);
    let read = |value: Value| {
        let usage = value.get("use").filter(|usage| !usage.is_null()).map(|usage| usage.as_str().unwrap_or_default());
        let is_meant = match key_use {
            KeyUse::Signature => usage.is_none_or(|usage| usage == "sig"),
            KeyUse::JwtSvid => usage.map_or(!any_use, |usage| usage == "jwt-svid"),
        };
        match usage {
            _ if is_meant => public_key(value).ok_or("of an unsupported type, size or operation"),
            None => Err("without use"),
            Some("sig") => Err("sig"),
            Some("enc") => Err("enc"),
            Some("jwt-svid") => Err("jwt-svid"),
            Some("x509-svid") => Err("x509-svid"),
            Some(_) => Err("with another use"),
        }
    };
    Some(set.keys.into_iter().map(read).collect())
}

/// Returns the key if it is a public one for signatures of a permitted kind.
fn public_key(value: Value) -> Option<PublicKey> {
    let key: JsonWebKey = serde_json::from_value(value).ok()?;
    if key.key_ops.is_some_and(|operations| !operations.iter().any(|operation| operation == "verify")) {
        return None;
    }
    let algorithm = match key.alg.as_deref() {
        None => None,
        Some(text) => Some(Algorithm::parse(text)?),
    };
    let part = |text: &Option<String>| text.as_deref().and_then(decode);
    let kind = match (key.kty.as_str(), key.crv.as_deref()) {
        ("RSA", _) => {
            let (modulus, exponent) = (stripped(part(&key.n)?), stripped(part(&key.e)?));
            (modulus.len() >= MIN_MODULUS).then_some(KeyKind::Rsa { modulus, exponent })?
        }
        ("EC", Some("P-256")) => KeyKind::P256(point(&part(&key.x)?, &part(&key.y)?, 32)?),
        ("EC", Some("P-384")) => KeyKind::P384(point(&part(&key.x)?, &part(&key.y)?, 48)?),
        ("OKP", Some("Ed25519")) => KeyKind::Ed25519(part(&key.x).filter(|x| x.len() == 32)?),
        _ => return None,
    };
    let fits = algorithm.is_none_or(|algorithm| algorithm.fits(&kind));
    fits.then_some(PublicKey { id: key.kid, algorithm, kind })
}

/// Removes leading zeros from a number.
fn stripped(bytes: Vec<u8>) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.into_iter().skip(zeros).collect()
}

/// Returns an uncompressed point of a curve (SEC 1, 2.3.3).
fn point(x: &[u8], y: &[u8], length: usize) -> Option<Vec<u8>> {
    (x.len() == length && y.len() == length).then(|| [&[4], x, y].concat())
}

impl KeyKind {
    fn has_signed(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        let by = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(signed, signature).is_ok()
        };
        match self {
            Self::Rsa { modulus, exponent } => {
                let parameters: &RsaParameters = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, signed, signature).is_ok()
            }
            Self::P256(key) => by(&ECDSA_P256_SHA256_FIXED, key),
            Self::P384(key) => by(&ECDSA_P384_SHA384_FIXED, key),
            Self::Ed25519(key) => by(&ED25519, key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(usage: Option<&str>) -> Value {
        let mut key = json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode([7; 32])});
        if let Some(usage) = usage {
            key["use"] = usage.into();
        }
        key
    }

    fn count(keys: &[Value], key_use: KeyUse) -> (usize, String) {
        let set = json!({"keys": keys, "spiffe_sequence": 1}).to_string();
        let count = JwtVerifier.count_keys(&set, key_use).unwrap_or_default();
        (count.usable, count.to_string())
    }

    #[test]
    fn spiffe_bundles_verify_by_jwt_svid_keys_only() {
        let bundle = ["x509-svid", "jwt-svid", "sig", "later"].map(|usage| key(Some(usage)));
        let (usable, shown) = count(&bundle, KeyUse::JwtSvid);
        assert_eq!((usable, &*shown), (1, "4 keys: 1 usable, 1 sig, 1 with another use, 1 x509-svid"));
        // A set that never specifies a use counts as a whole. Otherwise, only matching keys verify tokens.
        assert_eq!(count(&[key(None), key(None)], KeyUse::JwtSvid).0, 2);
        assert_eq!(count(&[key(None), key(Some("x509-svid"))], KeyUse::JwtSvid).0, 0);
        let small = json!({"kty": "RSA", "use": "jwt-svid", "n": "AQAB", "e": "AQAB"});
        assert_eq!(
            count(&[small], KeyUse::JwtSvid),
            (0, "1 key: 1 of an unsupported type, size or operation".to_owned())
        );
    }

    #[test]
    fn openid_issuers_verify_by_sig_keys_or_keys_without_use() {
        let keys = [None, Some("sig"), Some("enc"), Some("jwt-svid")].map(key);
        assert_eq!(count(&keys, KeyUse::Signature), (2, "4 keys: 2 usable, 1 enc, 1 jwt-svid".to_owned()));
        assert_eq!(count(&[], KeyUse::Signature), (0, "0 keys".to_owned()));
    }

    #[test]
    fn tokens_with_repeated_members_are_rejected() {
        let read = |header: &str, claims: &str| {
            let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
            let token = format!("{}.{}.{}", part(header), part(claims), part("signature"));
            JwtVerifier.read_unverified(&SecretString::from(token))
        };
        let (header, claims) = (r#"{"alg":"ES256"}"#, r#"{"sub":"a","x":{"y":1}}"#);
        assert_eq!(read(header, claims).and_then(|token| token.subject).as_deref(), Some("a"));
        assert_eq!(read(r#"{"alg":"ES256","alg":"none"}"#, claims), None);
        assert_eq!(read(header, r#"{"sub":"a","sub":"b"}"#), None);
        assert_eq!(read(header, r#"{"sub":"a","x":{"y":1,"y":1}}"#), None);
    }
}
