//! The keys below the instance key, one list for each purpose.

use crate::derived_keys::{AuditKeys, LookUpKeys};
use crate::instance_keys::Secrets;
use crate::key::SymmetricKey;
use crate::token::key::TokenKey;
use std::sync::Arc;
use vault_core::id::KeyId;
use vault_core::keyring::{KeyPurpose, KeyringDocument, KeyringEntry};
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;

/// A key of a purpose, ready for use.
pub(crate) struct UnwrappedKey<K> {
    /// Its entry in the keyring document.
    pub(crate) entry: KeyringEntry,
    pub(crate) key: Arc<K>,
}

/// The keys of one purpose: the active one, and those that only decrypt and verify, latest first.
pub(crate) struct UnwrappedKeys<K> {
    active: UnwrappedKey<K>,
    retiring: Vec<UnwrappedKey<K>>,
}

/// The keys of all purposes, as listed in one document.
pub(crate) struct PurposeKeys {
    pub(crate) lookup: UnwrappedKeys<LookUpKeys>,
    pub(crate) audit: UnwrappedKeys<AuditKeys>,
    pub(crate) token: UnwrappedKeys<TokenKey>,
}

impl<K> UnwrappedKey<K> {
    pub(crate) const fn id(&self) -> KeyId {
        self.entry.id
    }
}

impl<K> UnwrappedKeys<K> {
    pub(crate) fn active(&self) -> &UnwrappedKey<K> {
        &self.active
    }

    /// Returns the key that signs at `now`: the active one, once every server has loaded it.
    pub(crate) fn settled_at(&self, now: Timestamp) -> &UnwrappedKey<K> {
        match self.retiring.first() {
            Some(before) if !self.active.entry.is_settled(now) => before,
            _ => &self.active,
        }
    }

    /// Returns whether only the active key exists.
    pub(crate) const fn is_one(&self) -> bool {
        self.retiring.is_empty()
    }

    /// Returns all keys, the active one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &UnwrappedKey<K>> {
        std::iter::once(&self.active).chain(&self.retiring)
    }

    pub(crate) fn find(&self, id: KeyId) -> Option<&K> {
        self.all().find(|key| key.id() == id).map(|key| &*key.key)
    }
}

/// Loads the keys of a purpose that the document lists. Keys in `known` are not derived again.
fn unwrapped<K>(
    (document, secrets): (&KeyringDocument, &Secrets),
    purpose: KeyPurpose,
    known: Option<&UnwrappedKeys<K>>,
    make: impl Fn(&SymmetricKey) -> Option<K>,
) -> Option<UnwrappedKeys<K>> {
    let (mut active, mut retiring) = (None, Vec::new());
    for entry in document.entries().iter().filter(|entry| entry.purpose == purpose).copied() {
        let key = match known.and_then(|known| known.all().find(|key| key.id() == entry.id)) {
            Some(known) => Arc::clone(&known.key),
            None => Arc::new(make(secrets.get(&entry.id)?)?),
        };
        match entry.state {
            KeyState::Active => active = Some(UnwrappedKey { entry, key }),
            KeyState::Retiring => retiring.push(UnwrappedKey { entry, key }),
        }
    }
    retiring.sort_by_key(|key| std::cmp::Reverse(key.entry.since));
    Some(UnwrappedKeys { active: active?, retiring })
}

impl PurposeKeys {
    /// Loads the keys. Those in `known` are not derived again. `None` if one of them is invalid.
    pub(crate) fn open(document: &KeyringDocument, secrets: &Secrets, known: Option<&Self>) -> Option<Self> {
        let sealed = (document, secrets);
        Some(Self {
            lookup: unwrapped(sealed, KeyPurpose::Lookup, known.map(|known| &known.lookup), |key| {
                Some(LookUpKeys::derive(key))
            })?,
            audit: unwrapped(sealed, KeyPurpose::Audit, known.map(|known| &known.audit), |key| {
                Some(AuditKeys::derive(key))
            })?,
            token: unwrapped(sealed, KeyPurpose::Token, known.map(|known| &known.token), |key| {
                TokenKey::new(key).ok()
            })?,
        })
    }

    /// Returns whether one of them has this ID.
    pub(crate) fn has(&self, id: KeyId) -> bool {
        self.lookup.find(id).is_some() || self.audit.find(id).is_some() || self.token.find(id).is_some()
    }
}

/// Given keys, for tests. The first key of each purpose is active.
#[cfg(any(test, fuzzing))]
pub(crate) struct Given<'a> {
    pub(crate) lookup: &'a [(KeyId, SymmetricKey)],
    pub(crate) audit: &'a [(KeyId, SymmetricKey)],
    pub(crate) token: &'a [(KeyId, SymmetricKey)],
}

#[cfg(any(test, fuzzing))]
impl From<Given<'_>> for PurposeKeys {
    fn from(given: Given<'_>) -> Self {
        fn unwrapped<K>(keys: &[(KeyId, SymmetricKey)], make: impl Fn(KeyId, &SymmetricKey) -> K) -> UnwrappedKeys<K> {
            let entry = |(id, key): &(KeyId, SymmetricKey)| {
                let (purpose, state, since) = (KeyPurpose::Token, KeyState::Active, Timestamp::from_millis(0));
                UnwrappedKey { entry: KeyringEntry { purpose, id: *id, state, since }, key: Arc::new(make(*id, key)) }
            };
            let (active, retiring) = keys.split_first().unwrap_or_else(|| unreachable!("a purpose has an active key"));
            UnwrappedKeys { active: entry(active), retiring: retiring.iter().map(entry).collect() }
        }
        Self {
            lookup: unwrapped(given.lookup, |_, key| LookUpKeys::derive(key)),
            audit: unwrapped(given.audit, |_, key| AuditKeys::derive(key)),
            token: unwrapped(given.token, |_, key| {
                TokenKey::new(key).unwrap_or_else(|_| unreachable!("any key will do"))
            }),
        }
    }
}

#[cfg(test)]
mod tests;
