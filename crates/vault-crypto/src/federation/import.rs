//! Import of RSA private keys.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::{KeyPair, PublicKeyComponents};
use ring::signature::RSA_PKCS1_SHA256;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use vault_core::federation::Jwk;
use vault_core::port::FederationKeyImporter;
use zeroize::Zeroizing;

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// The exponent 65537, big-endian.
const EXPONENT: [u8; 3] = [1, 0, 1];
/// Lengths of a modulus of 2,048 and 4,096 bits in bytes.
const MODULUS_LENGTHS: [usize; 2] = [256, 512];

/// Reads signing keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct FederationKeys;

impl FederationKeyImporter for FederationKeys {
    fn import(&self, pem: &SecretString) -> Option<(Jwk, SecretString)> {
        let base64 = base64_of(pem)?;
        let jwk = PrivateKey::from_base64(&base64)?.jwk()?;
        Some((jwk, base64))
    }
}

/// Returns the base64 text of a PEM file with exactly one unencrypted PKCS #8 key (RFC 7468, section 10).
fn base64_of(pem: &SecretString) -> Option<SecretString> {
    let text = pem.expose_secret(); // the key to import
    let (before, rest) = text.split_once(BEGIN)?;
    let (encoded, after) = rest.split_once(END)?;
    if !before.trim().is_empty() || !after.trim().is_empty() {
        return None;
    }
    let mut lines = Zeroizing::new(String::with_capacity(encoded.len()));
    lines.extend(encoded.chars().filter(|char| !char.is_ascii_whitespace()));
    Some(SecretString::from(lines.as_str()))
}

/// An RSA private key that can sign federation tokens.
pub(super) struct PrivateKey {
    pair: KeyPair,
    /// Modulus, big-endian.
    modulus: Vec<u8>,
}

impl PrivateKey {
    /// Parses a PKCS #8 key of 2,048 to 4,096 bits with the exponent 65537. The parser also checks that its numbers are
    /// consistent.
    pub(super) fn from_base64(text: &SecretString) -> Option<Self> {
        let bytes = STANDARD.decode(text.expose_secret()).ok().map(Zeroizing::new)?; // the key to parse
        let pair = KeyPair::from_pkcs8(&bytes).ok()?;
        let PublicKeyComponents::<Vec<u8>> { n: modulus, e: exponent } = pair.public().into();
        let [least, most] = MODULUS_LENGTHS;
        let is_accepted = (least..=most).contains(&modulus.len()) && exponent == EXPONENT;
        is_accepted.then_some(Self { pair, modulus })
    }

    /// Returns the public key, whose key ID is the SHA-256 thumbprint (RFC 7638).
    pub(super) fn jwk(&self) -> Option<Jwk> {
        let modulus = URL_SAFE_NO_PAD.encode(&self.modulus);
        // The required fields in lexicographic order, without white space.
        let fields = format!(r#"{{"e":"AQAB","kty":"RSA","n":"{modulus}"}}"#);
        Jwk::new(URL_SAFE_NO_PAD.encode(Sha256::digest(fields)), modulus)
    }

    /// Returns the RS256 signature (RFC 7518, section 3.3). Returns `None` if the operating system returns no randomness.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.modulus.len()];
        // The signature is deterministic. The randomness blinds the key against timing attacks.
        self.pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).ok()?;
        Some(signature)
    }
}
