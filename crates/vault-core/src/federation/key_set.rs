//! The stored signing keys and the rules of their states.

use super::{FederationIssuer, FederationKey, FederationKeyState, Jwk, PublicationChecks};
use crate::audit::AuditAction::{
    self, FederationKeyAdded, FederationKeyPromoted, FederationKeyRemoved, FederationKeyRetired,
};
use crate::audit::{Affected, Subject};
use crate::entity::{Entity, Index, Kind, Lookup};
use crate::id::KeyId;
use crate::time::Timestamp;
use FederationKeyState::{Current, Next, Retired};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Age of a key's publication from which it may sign, in seconds. Providers cache key sets for up to a day.
pub const SETTLED_SECONDS: i64 = 24 * 60 * 60;

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

/// The signing keys of all issuers. They are one document, so that a key cannot be put back without the others: the document
/// then has an earlier version than the audit log records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKeys(Vec<FederationKey>);

impl Entity for SigningKeys {
    const KIND: Kind = Kind::SigningKeys;

    /// The value is unique, so there is one document.
    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        vec![Lookup::new(Index::SigningKeys, "all")]
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::SigningKeys(KeyId::from_uuid(id)).into()
    }
}

impl SigningKeys {
    /// Returns the keys of all issuers.
    pub fn all(&self) -> &[FederationKey] {
        &self.0
    }

    /// Returns the keys of an issuer: by state, then newest first.
    pub fn of<'a>(&'a self, issuer: &'a FederationIssuer) -> Vec<&'a FederationKey> {
        let mut keys: Vec<_> = self.of_issuer(issuer).collect();
        keys.sort_by_key(|key| (key.state, std::cmp::Reverse(key.since()), key.kid()));
        keys
    }

    /// Returns the keys that an issuer publishes, in the same order.
    pub fn published<'a>(&'a self, issuer: &'a FederationIssuer) -> Vec<&'a FederationKey> {
        self.of(issuer).into_iter().filter(|key| key.is_published).collect()
    }

    /// Returns the key of an issuer that signs.
    pub fn signing<'a>(&'a self, issuer: &'a FederationIssuer) -> Option<&'a FederationKey> {
        self.of_issuer(issuer).find(|key| key.state == Current)
    }

    /// Returns the next key of an issuer.
    pub fn next<'a>(&'a self, issuer: &'a FederationIssuer) -> Option<&'a FederationKey> {
        self.of_issuer(issuer).find(|key| key.state == Next)
    }

    fn of_issuer<'a>(&'a self, issuer: &'a FederationIssuer) -> impl Iterator<Item = &'a FederationKey> {
        self.0.iter().filter(move |key| key.issuer == *issuer)
    }

    /// Returns the keys after a change, and the actions on them by key ID.
    ///
    /// # Errors
    /// A rule forbids it.
    pub fn changed(
        &self,
        change: &SigningKeyChange,
        checks: &PublicationChecks,
        now: Timestamp,
    ) -> Result<(Self, KeyActions), FederationKeyError> {
        let (mut after, mut actions) = (self.clone(), KeyActions::new());
        match change {
            SigningKeyChange::Add(key) => after.add(key, &mut actions)?,
            SigningKeyChange::Remove { issuer, kid } => match self.of_issuer(issuer).find(|key| key.kid() == kid) {
                None => return Err(FederationKeyError::NotFound(kid.clone())),
                Some(key) if key.state == Current => return Err(FederationKeyError::Current(kid.clone())),
                Some(key) => {
                    after.0.retain(|other| other != key);
                    actions.push((FederationKeyRemoved, kid.clone()));
                }
            },
            SigningKeyChange::Promote { issuer, is_forced } => {
                let next = self.next(issuer).ok_or(FederationKeyError::NoNext)?.kid();
                let may_sign = self.signing(issuer).is_none() || checks.is_settled(next, now);
                if !(*is_forced || may_sign && checks.was_found(next, now)) {
                    return Err(FederationKeyError::NotRead(next.to_owned()));
                }
                after.promote(issuer, now, &mut actions);
            }
            SigningKeyChange::Keep(kept) => {
                for key in after.0.iter_mut().filter(|key| key.is_published && !kept.contains(&key.jwk)) {
                    key.retire(now);
                    key.is_published = false;
                    actions.push((FederationKeyRetired, key.kid().to_owned()));
                }
            }
        }
        Ok((after, actions))
    }

    fn add(&mut self, key: &FederationKey, actions: &mut KeyActions) -> Result<(), FederationKeyError> {
        if self.of_issuer(&key.issuer).any(|known| known.jwk == key.jwk) {
            return Err(FederationKeyError::Known(key.kid().to_owned()));
        }
        if let Some(next) = self.next(&key.issuer) {
            return Err(FederationKeyError::NextExists(next.kid().to_owned()));
        }
        actions.push((FederationKeyAdded, key.kid().to_owned()));
        let is_dropped = |old: &FederationKey| old.issuer == key.issuer && old.state == Retired;
        let dropped = self.0.iter().filter(|old| is_dropped(old));
        actions.extend(dropped.map(|old| (FederationKeyRemoved, old.kid().to_owned())));
        self.0.retain(|old| !is_dropped(old));
        self.0.push(key.clone());
        Ok(())
    }

    fn promote(&mut self, issuer: &FederationIssuer, now: Timestamp, actions: &mut KeyActions) {
        for key in self.0.iter_mut().filter(|key| key.issuer == *issuer) {
            match key.state {
                Next => {
                    (key.state, key.active_at) = (Current, Some(now));
                    actions.insert(0, (FederationKeyPromoted, key.kid().to_owned()));
                }
                Current => {
                    key.retire(now);
                    actions.push((FederationKeyRetired, key.kid().to_owned()));
                }
                Retired => {}
            }
        }
    }
}

/// Actions on signing keys, with their key IDs.
pub type KeyActions = Vec<(AuditAction, String)>;

/// A change of signing keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SigningKeyChange {
    /// Adds a key in the state `next`, and removes the retired ones of its issuer.
    Add(FederationKey),
    /// Removes a key that is not current.
    Remove {
        /// Issuer of the key.
        issuer: FederationIssuer,
        /// Its key ID.
        kid: String,
    },
    /// Makes the next key of an issuer current, and retires the current one.
    Promote {
        /// The issuer.
        issuer: FederationIssuer,
        /// True even if providers may not have read the key.
        is_forced: bool,
    },
    /// After a restore, retires the keys of all issuers except these, which are published. The others may have leaked and been
    /// removed since the backup, so they are no longer published.
    Keep(Vec<Jwk>),
}
