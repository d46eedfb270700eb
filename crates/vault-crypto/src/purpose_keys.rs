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
pub(crate) struct Term<K> {
    /// Its entry in the keyring document.
    pub(crate) term: KeyringEntry,
    pub(crate) key: Arc<K>,
}

/// The keys of one purpose: the active one, and those that only decrypt and verify, latest first.
pub(crate) struct Terms<K> {
    active: Term<K>,
    retiring: Vec<Term<K>>,
}

/// The keys of all purposes, as listed in one document.
pub(crate) struct PurposeKeys {
    pub(crate) lookup: Terms<LookUpKeys>,
    pub(crate) audit: Terms<AuditKeys>,
    pub(crate) token: Terms<TokenKey>,
}

impl<K> Term<K> {
    /// Returns the ID of the key.
    pub(crate) const fn id(&self) -> KeyId {
        self.term.id
    }
}

impl<K> Terms<K> {
    /// Returns the active key.
    pub(crate) fn active(&self) -> &Term<K> {
        &self.active
    }

    /// Returns the key that signs at `now`: the active one, once every server has loaded it.
    pub(crate) fn settled_at(&self, now: Timestamp) -> &Term<K> {
        match self.retiring.first() {
            Some(before) if !self.active.term.is_settled(now) => before,
            _ => &self.active,
        }
    }

    /// Returns whether only the active key exists.
    pub(crate) const fn is_one(&self) -> bool {
        self.retiring.is_empty()
    }

    /// Returns all keys, the active one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Term<K>> {
        std::iter::once(&self.active).chain(&self.retiring)
    }

    /// Returns the key with this ID.
    pub(crate) fn find(&self, id: KeyId) -> Option<&K> {
        self.all().find(|key| key.id() == id).map(|key| &*key.key)
    }
}

/// Loads the keys of a purpose that the document lists. Keys in `known` are not derived again.
fn terms<K>(
    (document, secrets): (&KeyringDocument, &Secrets),
    purpose: KeyPurpose,
    known: Option<&Terms<K>>,
    make: impl Fn(&SymmetricKey) -> Option<K>,
) -> Option<Terms<K>> {
    let (mut active, mut retiring) = (None, Vec::new());
    for term in document.terms().iter().filter(|term| term.purpose == purpose).copied() {
        let key = match known.and_then(|known| known.all().find(|key| key.id() == term.id)) {
            Some(known) => Arc::clone(&known.key),
            None => Arc::new(make(secrets.get(&term.id)?)?),
        };
        match term.state {
            KeyState::Active => active = Some(Term { term, key }),
            KeyState::Retiring => retiring.push(Term { term, key }),
        }
    }
    retiring.sort_by_key(|key| std::cmp::Reverse(key.term.since));
    Some(Terms { active: active?, retiring })
}

impl PurposeKeys {
    /// Loads the keys. Those in `known` are not derived again. `None` if one of them is invalid.
    pub(crate) fn open(document: &KeyringDocument, secrets: &Secrets, known: Option<&Self>) -> Option<Self> {
        let sealed = (document, secrets);
        Some(Self {
            lookup: terms(sealed, KeyPurpose::Lookup, known.map(|known| &known.lookup), |key| {
                Some(LookUpKeys::derive(key))
            })?,
            audit: terms(sealed, KeyPurpose::Audit, known.map(|known| &known.audit), |key| {
                Some(AuditKeys::derive(key))
            })?,
            token: terms(sealed, KeyPurpose::Token, known.map(|known| &known.token), |key| TokenKey::new(key).ok())?,
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
        fn terms<K>(keys: &[(KeyId, SymmetricKey)], make: impl Fn(KeyId, &SymmetricKey) -> K) -> Terms<K> {
            let term = |(id, key): &(KeyId, SymmetricKey)| {
                let (purpose, state, since) = (KeyPurpose::Token, KeyState::Active, Timestamp::from_millis(0));
                Term { term: KeyringEntry { purpose, id: *id, state, since }, key: Arc::new(make(*id, key)) }
            };
            let (active, retiring) = keys.split_first().unwrap_or_else(|| unreachable!("a purpose has an active key"));
            Terms { active: term(active), retiring: retiring.iter().map(term).collect() }
        }
        Self {
            lookup: terms(given.lookup, |_, key| LookUpKeys::derive(key)),
            audit: terms(given.audit, |_, key| AuditKeys::derive(key)),
            token: terms(given.token, |_, key| TokenKey::new(key).unwrap_or_else(|_| unreachable!("any key will do"))),
        }
    }
}

#[cfg(test)]
mod tests;
