//! The set of an issuer's signing keys and the rules of their states.

use super::{FederationIssuer, FederationKey, FederationKeyState, Jwk};
use crate::id::KeyId;
use crate::time::Timestamp;
use FederationKeyState::{Current, Next, Retired};

/// Reason why a signing key cannot be changed as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FederationKeyError {
    /// The previously added key is not current yet.
    #[error("signing key {0} is not current yet. Remove it first with `orgvault federation key remove {0}`")]
    NextExists(String),
    /// The key was added before.
    #[error(
        "signing key {0} was added before. Create another one with `openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072`"
    )]
    Known(String),
    /// No key is in the state `next`.
    #[error("there is no next signing key. Add one with `orgvault federation key add --file PEM`")]
    NoNext,
    /// The current key cannot be removed.
    #[error("signing key {0} is current. Add another key, then run `orgvault federation key promote`")]
    Current(String),
    /// No signing key of the issuer has this key ID.
    #[error("no signing key is {0}. List the keys with `orgvault federation status`")]
    NotFound(String),
    /// Providers may not have read the next key yet.
    #[error(
        "providers may not have read signing key {0} yet. A key can sign 24 hours after a publication check found it: see \
         `orgvault federation status`. With --now it signs immediately, and exchanges fail until the providers have read the \
         new key set"
    )]
    NotRead(String),
}

/// The valid signing keys of one issuer. All of them are published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationKeySet {
    keys: Vec<FederationKey>,
    is_complete: bool,
}

impl FederationKeySet {
    /// Age of a key's publication from which it may sign, in seconds. Providers cache key sets for up to a day.
    pub const SETTLED_SECONDS: i64 = 24 * 60 * 60;

    /// Creates the set of those `keys` that belong to `issuer`. `is_complete` states whether every key that the keyring
    /// names has a valid row.
    pub fn new(issuer: &FederationIssuer, keys: impl IntoIterator<Item = FederationKey>, is_complete: bool) -> Self {
        let mut keys: Vec<_> = keys.into_iter().filter(|key| key.issuer == *issuer).collect();
        keys.sort_by_key(|key| (key.state, std::cmp::Reverse(key.since()), key.id));
        Self { keys, is_complete }
    }

    /// Returns the keys: by state, then newest first.
    pub fn keys(&self) -> &[FederationKey] {
        &self.keys
    }

    /// Returns the key that signs. If several keys are `current`, because an older state of a row was restored, returns
    /// the newest.
    pub fn signing(&self) -> Option<&FederationKey> {
        self.in_state(Current).max_by_key(|key| (key.active_at, key.id))
    }

    /// Returns the next key.
    pub fn next(&self) -> Option<&FederationKey> {
        self.in_state(Next).next()
    }

    /// Returns the keys that do not sign any more.
    pub fn retired(&self) -> impl Iterator<Item = &FederationKey> {
        self.in_state(Retired)
    }

    /// Returns the key with this key ID.
    pub fn find(&self, kid: &str) -> Result<&FederationKey, FederationKeyError> {
        self.keys.iter().find(|key| key.jwk.kid() == kid).ok_or_else(|| FederationKeyError::NotFound(kid.to_owned()))
    }

    /// Returns the row of a new key.
    ///
    /// # Errors
    /// The set has a next key, or contains the key already.
    pub fn add(
        &self,
        id: KeyId,
        issuer: &FederationIssuer,
        jwk: Jwk,
        now: Timestamp,
    ) -> Result<FederationKey, FederationKeyError> {
        if self.find(jwk.kid()).is_ok() {
            return Err(FederationKeyError::Known(jwk.kid().to_owned()));
        }
        match self.next() {
            Some(next) => Err(FederationKeyError::NextExists(next.jwk.kid().to_owned())),
            None => Ok(FederationKey::new(id, issuer.clone(), jwk, now)),
        }
    }

    /// Returns the key to remove.
    ///
    /// # Errors
    /// No key has this key ID, or it is current.
    pub fn remove(&self, kid: &str) -> Result<&FederationKey, FederationKeyError> {
        match self.find(kid)? {
            key if key.state == Current => Err(FederationKeyError::Current(kid.to_owned())),
            key => Ok(key),
        }
    }

    /// Returns the rows of a promotion: the next key is current, and every current one is retired. `was_found` states whether
    /// a recent publication check found a key. `is_forced` promotes it even if providers may not have read it.
    ///
    /// # Errors
    /// There is no next key, or providers may not have read it.
    pub fn promote(
        &self,
        was_found: impl Fn(&FederationKey) -> bool,
        is_forced: bool,
        now: Timestamp,
    ) -> Result<Vec<FederationKey>, FederationKeyError> {
        let next = self.next().ok_or(FederationKeyError::NoNext)?;
        let is_settled = next.published_at.is_some_and(|since| since.plus_seconds(Self::SETTLED_SECONDS) <= now);
        // A current key whose row is damaged does not count as absent, so that damage causes no early promotion.
        let nothing_signs = self.is_complete && self.signing().is_none();
        if !is_forced && !((nothing_signs || is_settled) && was_found(next)) {
            return Err(FederationKeyError::NotRead(next.jwk.kid().to_owned()));
        }
        let promoted = FederationKey { state: Current, active_at: Some(now), ..changed(next) };
        Ok(std::iter::once(promoted).chain(self.in_state(Current).map(|key| key.retire(now))).collect())
    }

    fn in_state(&self, state: FederationKeyState) -> impl Iterator<Item = &FederationKey> {
        self.keys.iter().filter(move |key| key.state == state)
    }
}

fn changed(key: &FederationKey) -> FederationKey {
    FederationKey { version: key.version.saturating_add(1), ..key.clone() }
}

impl FederationKey {
    /// Returns the row of a key that does not sign any more.
    pub fn retire(&self, now: Timestamp) -> Self {
        Self { state: Retired, retired_at: self.retired_at.or(Some(now)), ..changed(self) }
    }

    /// Returns the row after a publication check that found the key at `now` for the first time. Returns `None` if it was
    /// found before.
    pub fn first_found(&self, now: Timestamp) -> Option<Self> {
        self.published_at.is_none().then(|| Self { published_at: Some(now), ..changed(self) })
    }
}
