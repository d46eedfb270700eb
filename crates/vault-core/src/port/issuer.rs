//! Ports for issuers of identity tokens: retrieval of their keys, and verification of tokens.

use crate::identity::{Issuer, KeySource};
use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Reason why the keys of an issuer could not be fetched: fixed words, and the URL of the outgoing proxy if it is the cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IssuerFailure(pub Cow<'static, str>);

/// Fetched keys of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedKeys {
    /// A JSON Web Key Set.
    pub keys: String,
    /// Location of the keys, from which all later requests fetch them.
    pub source: KeySource,
}

/// Port that fetches the keys of issuers.
#[async_trait]
pub trait IssuerKeys: Send + Sync {
    /// Fetches the keys of an issuer. Refuses a discovery document that refers to another origin than the recorded one.
    async fn fetch(&self, issuer: &Issuer) -> Result<FetchedKeys, IssuerFailure>;
}

/// Fields of a token before verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedToken {
    /// `iss`, if it has one.
    pub issuer: Option<String>,
    /// `sub`, if it has one.
    pub subject: Option<String>,
    /// The audience, if there is exactly one.
    pub audience: Option<String>,
}

/// Reason why a signature was not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// No key matches the key ID and algorithm of the token.
    UnknownKey,
    /// The token is malformed, uses a feature that is not permitted, or was not signed by any of the keys.
    Wrong,
}

/// Selects the keys of a set that verify tokens, by their `use`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// Keys with `use` `sig` or without `use` (OpenID Connect Core, 10.1.1).
    Signature,
    /// Keys with `use` `jwt-svid` (SPIFFE Trust Domain and Bundle, 4.2.2). In a set without any `use`, all keys.
    JwtSvid,
}

/// Numbers of keys in a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyCount {
    /// Keys that can verify a token.
    pub usable: usize,
    /// All other keys, by reason: their `use`, or an unsupported type or size.
    pub others: BTreeMap<&'static str, usize>,
}

impl fmt::Display for KeyCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.usable + self.others.values().sum::<usize>();
        write!(f, "{total} {}", if total == 1 { "key" } else { "keys" })?;
        let usable = (self.usable > 0).then_some((&"usable", &self.usable));
        for (index, (kind, count)) in usable.into_iter().chain(&self.others).enumerate() {
            write!(f, "{} {count} {kind}", if index == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

/// Port that reads and verifies tokens (RFC 7515, 7518, 8725).
pub trait TokenVerifier: Send + Sync {
    /// Reads the fields of a token without verification. Returns `None` if it is malformed.
    fn read_unverified(&self, token: &SecretString) -> Option<UnverifiedToken>;

    /// Returns the claims of a token that was signed by one of `keys`, a JSON Web Key Set.
    ///
    /// # Errors
    /// The reason why the signature was not verified.
    fn verify(&self, token: &SecretString, keys: &str, key_use: KeyUse) -> Result<Value, SignatureError>;

    /// Counts the keys of a JSON Web Key Set. Returns `None` if the text is not a key set.
    fn count_keys(&self, keys: &str, key_use: KeyUse) -> Option<KeyCount>;
}
