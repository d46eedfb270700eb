//! Signing keys and their states.

use super::{FederationIssuer, Jwk, PublicationFailure};
use crate::digest::{DigestPurpose, RowMac};
use crate::id::KeyId;
use crate::port::KeyedDigester;
use crate::sealed::Blob;
use crate::time::Timestamp;

/// State of a signing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum FederationKeyState {
    /// Published, so that providers read it before it signs.
    Next,
    /// Published, and signs.
    Current,
    /// Does not sign any more. Published for as long as the keyring names it: until another key is added, or a restore.
    Retired,
}

impl FederationKeyState {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Next, Self::Current, Self::Retired];

    /// Returns the stored name of the state.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses the stored name.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A signing key without its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationKey {
    /// ID of the key, which the keyring names.
    pub id: KeyId,
    /// Issuer of the tokens that it signs.
    pub issuer: FederationIssuer,
    /// State.
    pub state: FederationKeyState,
    /// Public key.
    pub jwk: Jwk,
    /// Time of the addition.
    pub created_at: Timestamp,
    /// Time at which a publication check first found it.
    pub published_at: Option<Timestamp>,
    /// Time since which it signs or has signed.
    pub active_at: Option<Timestamp>,
    /// Time since which it no longer signs.
    pub retired_at: Option<Timestamp>,
    /// Version of the row, incremented by each change.
    pub version: i64,
}

impl FederationKey {
    /// Creates a key in the state `next`.
    pub const fn new(id: KeyId, issuer: FederationIssuer, jwk: Jwk, now: Timestamp) -> Self {
        Self {
            id,
            issuer,
            state: FederationKeyState::Next,
            jwk,
            created_at: now,
            published_at: None,
            active_at: None,
            retired_at: None,
            version: 1,
        }
    }

    /// Returns the time since which it is in its state.
    pub fn since(&self) -> Timestamp {
        let since = match self.state {
            FederationKeyState::Next => None,
            FederationKeyState::Current => self.active_at,
            FederationKeyState::Retired => self.retired_at,
        };
        since.unwrap_or(self.created_at)
    }

    /// Returns the MAC of the row under the active instance key.
    pub fn sign(&self, digester: &dyn KeyedDigester) -> RowMac {
        self.with_parts(|parts| digester.sign(DigestPurpose::FederationKey, parts))
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let Self { id, issuer, state, jwk, created_at, published_at, active_at, retired_at, version } = self;
        let jwk = jwk.to_json();
        // A missing time is an empty part.
        let times = [Some(*created_at), *published_at, *active_at, *retired_at]
            .map(|time| time.map(|time| time.as_millis().to_be_bytes()));
        let version = version.to_be_bytes();
        let mut parts: Vec<&[u8]> =
            vec![id.as_bytes(), issuer.as_str().as_bytes(), state.as_str().as_bytes(), jwk.as_bytes()];
        parts.extend(times.iter().map(|time| time.as_ref().map_or(&[][..], |bytes| &bytes[..])));
        parts.push(&version);
        digest(&parts)
    }
}

/// A signing key as its row stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFederationKey {
    /// Fields that the row's MAC covers.
    pub key: FederationKey,
    /// Private key (PKCS #8), sealed with the instance key.
    pub private_key: Blob,
    /// MAC of the row.
    pub mac: RowMac,
    /// Time of the last publication check. Not covered by the MAC, because it grants nothing.
    pub checked_at: Option<Timestamp>,
    /// Finding of that check. Not covered by the MAC.
    pub failure: Option<PublicationFailure>,
}

impl StoredFederationKey {
    /// Returns whether the row's MAC verifies.
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester) -> bool {
        self.key.with_parts(|parts| digester.is_signed(DigestPurpose::FederationKey, parts, &self.mac))
    }

    /// Returns the instance keys that the row depends on.
    pub fn keys(&self) -> Vec<KeyId> {
        std::iter::once(self.mac.key).chain(self.private_key.key()).collect()
    }

    /// Returns whether a publication check at most [`Self::CHECK_SECONDS`] before `now` found the key.
    pub fn was_found(&self, now: Timestamp) -> bool {
        let is_recent = self.checked_at.is_some_and(|at| now <= at.plus_seconds(Self::CHECK_SECONDS));
        is_recent && self.failure.is_none_or(PublicationFailure::finds_keys)
    }

    /// Returns whether its publication must be checked at `now`.
    pub fn is_check_due(&self, now: Timestamp) -> bool {
        self.checked_at.is_none_or(|at| at.plus_seconds(Self::CHECK_SECONDS) <= now || now < at)
    }

    /// Interval of publication checks, in seconds.
    pub const CHECK_SECONDS: i64 = 15 * 60;
}
