//! Issuers of workloads' tokens: in the store, asked for their keys, and their tokens verified.

use super::StoreError;
use crate::command::Command;
use crate::identity::{Issuer, IssuerName, KeySource, StoredIssuer};
use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Issuers in the store. They are few, and the operator's.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IssuerRepository: Send + Sync {
    /// Adds one.
    ///
    /// Refused with [`Refusal::IssuerExists`](crate::Refusal::IssuerExists): one has the name.
    async fn add_issuer(&self, command: Command<StoredIssuer>) -> Result<(), StoreError>;

    /// All of them, by name.
    async fn list_issuers(&self) -> Result<Vec<StoredIssuer>, StoreError>;

    /// Those of these names that there are.
    async fn find_issuers(&self, names: Vec<IssuerName>) -> Result<Vec<StoredIssuer>, StoreError>;

    /// Removes one. `false`: there is none of the name.
    async fn remove_issuer(&self, command: Command<IssuerName>) -> Result<bool, StoreError>;

    /// Notes what an issuer answered. Nothing is noted if the row is not as it was `seen`.
    async fn note_keys(&self, seen: StoredIssuer, next: StoredIssuer) -> Result<(), StoreError>;
}

/// Why an issuer's keys were not had, in fixed words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IssuerFailure(pub &'static str);

/// The keys of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedKeys {
    /// A JSON Web Key Set.
    pub keys: String,
    /// Where they were: from now on, they are fetched there alone.
    pub source: KeySource,
}

/// Asks issuers for their keys.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IssuerKeys: Send + Sync {
    /// The issuer's keys. Where a discovery document names another origin than the one on record, it is not asked.
    async fn fetch(&self, issuer: &Issuer) -> Result<FetchedKeys, IssuerFailure>;
}

/// A token as it was sent, before anything of it is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedToken {
    /// `iss`, if it has one.
    pub issuer: Option<String>,
    /// `sub`, if it has one.
    pub subject: Option<String>,
    /// The one audience, if there is one and no other.
    pub audience: Option<String>,
}

/// Why a signature was not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureFlaw {
    /// None of the keys has the id that the token names, or fits its algorithm.
    UnknownKey,
    /// It is no token, asks for what is not permitted, or nobody who has one of the keys made it.
    Wrong,
}

/// The keys of a set that verify tokens, by their `use`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// Keys with `use` `sig` or without `use` (OpenID Connect Core, 10.1.1).
    Signature,
    /// Keys with `use` `jwt-svid` (SPIFFE Trust Domain and Bundle, 4.2.2). In a set without any `use`, all keys.
    JwtSvid,
}

/// The keys of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyCount {
    /// Keys that can verify a token.
    pub usable: usize,
    /// All other keys, by the reason: their `use`, or that key type or size is not supported.
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

/// Reads and verifies tokens (RFC 7515, 7518, 8725).
pub trait TokenVerifier: Send + Sync {
    /// What a token says, unverified; `None`: it is none.
    fn read_unverified(&self, token: &SecretString) -> Option<UnverifiedToken>;

    /// Returns the claims of a token that was signed by one of `keys`, a JSON Web Key Set.
    ///
    /// # Errors
    /// The reason why the signature was not verified.
    fn verify(&self, token: &SecretString, keys: &str, key_use: KeyUse) -> Result<Value, SignatureFlaw>;

    /// Counts the keys of a JSON Web Key Set. Returns `None` if the text is not a key set.
    fn count_keys(&self, keys: &str, key_use: KeyUse) -> Option<KeyCount>;
}
