//! The set of an issuer's signing keys and the rules of their states.

use super::{FederationIssuer, FederationKey, FederationKeyState, Jwk};
use crate::id::KeyId;
use crate::time::Timestamp;
use FederationKeyState::{Current, Next, Previous, Retired};

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
    #[error("signing key {0} is current. Add another key, then run `orgvault federation rotate --now`")]
    Current(String),
    /// No signing key of the issuer has this key ID.
    #[error("no signing key is {0}. List the keys with `orgvault federation status`")]
    NotFound(String),
    /// The key is retired.
    #[error("signing key {0} is retired. Add another key with `orgvault federation key add --file PEM`")]
    Retired(String),
}

/// The valid signing keys of one issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationKeySet {
    keys: Vec<FederationKey>,
    is_complete: bool,
}

impl FederationKeySet {
    /// Age of a key's publication or confirmation from which it may sign, in seconds. Providers cache key sets for up to
    /// a day.
    pub const SETTLED_SECONDS: i64 = 24 * 60 * 60;
    /// Time for which a replaced key is published, in seconds. Tokens are valid for five minutes.
    pub const PREVIOUS_SECONDS: i64 = 60 * 60;

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

    /// Returns the keys of the key set document.
    pub fn published(&self) -> impl Iterator<Item = &FederationKey> {
        self.keys.iter().filter(|key| key.is_published())
    }

    /// Returns the key with this key ID. Prefers a published one.
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

    /// Returns the row of a key whose upload to every provider is confirmed at `now`.
    ///
    /// # Errors
    /// No published key has this key ID.
    pub fn confirm(&self, kid: &str, now: Timestamp) -> Result<FederationKey, FederationKeyError> {
        match self.find(kid)? {
            key if !key.is_published() => Err(FederationKeyError::Retired(kid.to_owned())),
            key => Ok(FederationKey { confirmed_at: key.confirmed_at.or(Some(now)), ..changed(key) }),
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

    /// Returns the rows of an immediate rotation: the next key is current, and all current ones are retired.
    ///
    /// # Errors
    /// There is no next key.
    pub fn rotate(&self, now: Timestamp) -> Result<Vec<FederationKey>, FederationKeyError> {
        let next = self.next().ok_or(FederationKeyError::NoNext)?;
        Ok(std::iter::once(activated(next, now)).chain(self.in_state(Current).map(|key| retired(key, now))).collect())
    }

    /// Returns the changed rows of all published keys that are not among `kept`: they are retired.
    pub fn retire_others(&self, kept: impl Fn(&FederationKey) -> bool, now: Timestamp) -> Vec<FederationKey> {
        self.published().filter(|key| !kept(key)).map(|key| retired(key, now)).collect()
    }

    /// Returns the rows that the passing of time changes: a previous key is retired after an hour, and the next key
    /// becomes current when providers have read it. `was_found` states whether a recent publication check found a key.
    pub fn due(&self, was_found: impl Fn(&FederationKey) -> bool, now: Timestamp) -> Vec<FederationKey> {
        let promoted = self.next().filter(|next| self.is_promotable(next, was_found(next), now));
        let is_expired = |key: &&FederationKey| {
            promoted.is_some() || key.retired_at.is_none_or(|at| at.plus_seconds(Self::PREVIOUS_SECONDS) <= now)
        };
        let mut rows: Vec<_> = self.in_state(Previous).filter(is_expired).map(|key| retired(key, now)).collect();
        if let Some(next) = promoted {
            let newest = self.signing().map(|key| key.id);
            // Only one key is previous. Another current one is an older state that was restored.
            rows.extend(self.in_state(Current).map(|key| match Some(key.id) == newest {
                true => FederationKey { state: Previous, retired_at: Some(now), ..changed(key) },
                false => retired(key, now),
            }));
            rows.push(activated(next, now));
        }
        rows
    }

    fn is_promotable(&self, next: &FederationKey, was_found: bool, now: Timestamp) -> bool {
        let is_settled =
            |since: Option<Timestamp>| since.is_some_and(|since| since.plus_seconds(Self::SETTLED_SECONDS) <= now);
        // A current key whose row is damaged does not count as absent, so that damage causes no early promotion.
        let nothing_signs = self.is_complete && self.signing().is_none();
        (nothing_signs || is_settled(next.published_at) || is_settled(next.confirmed_at))
            && (was_found || next.confirmed_at.is_some())
    }

    fn in_state(&self, state: FederationKeyState) -> impl Iterator<Item = &FederationKey> {
        self.keys.iter().filter(move |key| key.state == state)
    }
}

fn changed(key: &FederationKey) -> FederationKey {
    FederationKey { version: key.version.saturating_add(1), ..key.clone() }
}

fn activated(key: &FederationKey, now: Timestamp) -> FederationKey {
    FederationKey { state: Current, active_at: Some(now), ..changed(key) }
}

/// A previous key keeps the time since which it does not sign.
fn retired(key: &FederationKey, now: Timestamp) -> FederationKey {
    FederationKey { state: Retired, retired_at: key.retired_at.or(Some(now)), ..changed(key) }
}

impl FederationKey {
    /// Returns the row after a publication check that found the key at `now` for the first time. Returns `None` if it was
    /// found before.
    pub fn first_found(&self, now: Timestamp) -> Option<Self> {
        self.published_at.is_none().then(|| Self { published_at: Some(now), ..changed(self) })
    }
}
