//! Results of publication checks. They grant nothing but the promotion of a key, so no audit entry records them.

use super::{FederationKey, PublicationFailure, SETTLED_SECONDS};
use crate::audit::{Affected, Subject};
use crate::entity::{Entity, Kind, Lookup};
use crate::id::KeyId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Interval of publication checks, in seconds.
const CHECK_SECONDS: i64 = 15 * 60;

/// Result of the last publication check of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedKey {
    /// Its key ID.
    pub kid: String,
    /// Time at which a check first found it.
    pub published_at: Option<Timestamp>,
    /// Time of the last check.
    pub checked_at: Timestamp,
    /// Finding of that check.
    pub failure: Option<PublicationFailure>,
}

/// The last publication checks of all signing keys, under the ID of their document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicationChecks(Vec<CheckedKey>);

impl Entity for PublicationChecks {
    const KIND: Kind = Kind::PublicationChecks;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        Vec::new()
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::SigningKeys(KeyId::from_uuid(id)).into()
    }
}

impl PublicationChecks {
    /// Returns the last check of the key with this key ID.
    pub fn of(&self, kid: &str) -> Option<&CheckedKey> {
        self.0.iter().find(|checked| checked.kid == kid)
    }

    /// Returns the checks after another one at `now` of `keys`, with the finding about each. Those of keys that are not among
    /// `all` are dropped.
    #[must_use]
    pub fn after(
        &self,
        all: &[FederationKey],
        keys: &[&FederationKey],
        finding: impl Fn(&FederationKey) -> Option<PublicationFailure>,
        now: Timestamp,
    ) -> Self {
        let check = |key: &FederationKey| {
            let (before, failure) = (self.of(key.kid()), finding(key));
            let found = failure.is_none_or(PublicationFailure::finds_keys).then_some(now);
            let published_at = before.and_then(|checked| checked.published_at).or(found);
            CheckedKey { kid: key.kid().to_owned(), published_at, checked_at: now, failure }
        };
        let checked = all.iter().filter_map(|key| match keys.contains(&key) {
            true => Some(check(key)),
            false => self.of(key.kid()).cloned(),
        });
        Self(checked.collect())
    }

    /// Returns whether the publication of the key must be checked at `now`.
    pub fn is_due(&self, kid: &str, now: Timestamp) -> bool {
        self.of(kid).is_none_or(|checked| {
            let at = checked.checked_at;
            at.plus_seconds(CHECK_SECONDS) <= now || now < at
        })
    }

    /// Returns whether a check at most 15 minutes before `now` found the key.
    pub fn was_found(&self, kid: &str, now: Timestamp) -> bool {
        self.of(kid).is_some_and(|checked| {
            let is_recent = now <= checked.checked_at.plus_seconds(CHECK_SECONDS);
            is_recent && checked.failure.is_none_or(PublicationFailure::finds_keys)
        })
    }

    /// Returns whether the key was published so long before `now` that every provider has read it.
    pub fn is_settled(&self, kid: &str, now: Timestamp) -> bool {
        let since = self.of(kid).and_then(|checked| checked.published_at);
        since.is_some_and(|since| since.plus_seconds(SETTLED_SECONDS) <= now)
    }
}
