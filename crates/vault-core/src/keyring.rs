//! The set of a deployment's keys, as one numbered document.
//!
//! Keys lie in rows, but a row alone makes no key valid: whoever can write rows could bring a destroyed one back. Which keys
//! there are, this document says. It is stored sealed under the active instance key, so only who holds that key can make one;
//! and each later one names those before it by their hashes, so that one which is put back is told from one that follows.

use crate::digest::Digest;
use crate::id::KeyId;
use crate::sealed::{InstanceKeyPurpose, KeyState};
use crate::time::Timestamp;

/// How many hashes of earlier documents a document holds: as far behind it a server may be and still accept it.
const EARLIER: usize = 256;
/// How many terms a document may have.
const TERMS: usize = 1_024;

/// What a key term is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TermPurpose {
    /// The instance key: wraps keys of organizations, seals passwords and seeds, makes the codes of rows and cursors.
    Instance,
    /// Digests that rows are looked up by, and codes over rows that do not name their key.
    LookUp,
    /// Codes over audit records, checkpoints and the anchor.
    Audit,
    /// Access tokens.
    Token,
    /// Addresses and signing secrets of receivers.
    Receiver,
}

impl TermPurpose {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Instance, Self::LookUp, Self::Audit, Self::Token, Self::Receiver];

    /// The purpose's stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::LookUp => "look-up",
            Self::Audit => "audit",
            Self::Token => "token",
            Self::Receiver => "receiver",
        }
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Instance => 1,
            Self::LookUp => 2,
            Self::Audit => 3,
            Self::Token => 4,
            Self::Receiver => 5,
        }
    }
}

impl From<InstanceKeyPurpose> for TermPurpose {
    fn from(purpose: InstanceKeyPurpose) -> Self {
        match purpose {
            InstanceKeyPurpose::LookUp => Self::LookUp,
            InstanceKeyPurpose::Audit => Self::Audit,
            InstanceKeyPurpose::Token => Self::Token,
            InstanceKeyPurpose::Receiver => Self::Receiver,
        }
    }
}

/// A key, and what it may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTerm {
    /// What it is for.
    pub purpose: TermPurpose,
    /// The key.
    pub id: KeyId,
    /// [`KeyState::Active`]: seals and opens, or signs and verifies. [`KeyState::Retiring`]: opens and verifies only.
    pub state: KeyState,
    /// Since when it is in that state.
    pub since: Timestamp,
}

impl KeyTerm {
    /// For how long after a key was replaced something may still be made with it, in seconds: a server reads the keys once a
    /// second, and no decision takes as long as a minute.
    pub const DRAINED_SECONDS: i64 = 60;

    /// How old a term is before anything is signed under it, in seconds: by then every server has read the document that names it,
    /// which each does once a second, so that none meets a token or an audit entry whose key it does not know.
    pub const SETTLED_SECONDS: i64 = 5;

    /// Whether it is so old at `now` that every server knows it.
    pub fn is_settled(&self, now: Timestamp) -> bool {
        self.since.plus_seconds(Self::SETTLED_SECONDS) <= now
    }

    /// Whether it retires, and nothing is made with it any more at `now`.
    pub fn is_drained(&self, now: Timestamp) -> bool {
        self.state == KeyState::Retiring && self.since.plus_seconds(Self::DRAINED_SECONDS) <= now
    }
}

/// A document's number and hash. It tells a document from every other of its deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyringMark {
    /// The number: 1 for the first, one more for each that follows.
    pub number: i64,
    /// The SHA-256 of the document.
    pub hash: Digest,
}

/// The set of a deployment's keys. Each purpose has one active term, and any number that retire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyringDocument {
    number: i64,
    /// The hashes of the documents before, the newest first.
    earlier: Vec<Digest>,
    terms: Vec<KeyTerm>,
}

/// Why a set of keys is not changed so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    /// The key has or had a term in it.
    #[error("key {0} is in the keyring already")]
    Known(KeyId),
    /// There is no such term, or it is active.
    #[error("key {0} is not a retiring key of the keyring: only a retiring key is dropped")]
    NotRetiring(KeyId),
    /// It has as many terms as it may have.
    #[error("the keyring has {TERMS} keys already, the most it can have; drop retiring keys first")]
    Full,
}

impl KeyringDocument {
    /// The first document of a deployment, with these active keys: one for each purpose, in the order of
    /// [`TermPurpose::ALL`].
    pub fn first(keys: [KeyId; TermPurpose::ALL.len()], now: Timestamp) -> Self {
        let term = |(purpose, id)| KeyTerm { purpose, id, state: KeyState::Active, since: now };
        let terms = TermPurpose::ALL.into_iter().zip(keys).map(term).collect();
        Self { number: 1, earlier: Vec::new(), terms }
    }

    /// Its number.
    pub const fn number(&self) -> i64 {
        self.number
    }

    /// Its terms; of each purpose in the order in which they were made.
    pub fn terms(&self) -> &[KeyTerm] {
        &self.terms
    }

    /// The active term of a purpose.
    pub fn active(&self, purpose: TermPurpose) -> Option<&KeyTerm> {
        self.terms.iter().find(|term| term.purpose == purpose && term.state == KeyState::Active)
    }

    /// The terms that retire.
    pub fn retiring(&self) -> impl Iterator<Item = &KeyTerm> {
        self.terms.iter().filter(|term| term.state == KeyState::Retiring)
    }

    /// Whether `id` is a key of this purpose, active or retiring.
    pub fn has(&self, purpose: TermPurpose, id: KeyId) -> bool {
        self.terms.iter().any(|term| term.purpose == purpose && term.id == id)
    }

    /// The document after this one, whose hash is `own`, in which `keys` are the active keys of their purposes and those before
    /// them retire.
    ///
    /// # Errors
    /// One of the keys is in it already, or it is full.
    pub fn with_terms(&self, own: Digest, keys: &[(TermPurpose, KeyId)], now: Timestamp) -> Result<Self, TermError> {
        let mut terms = self.terms.clone();
        for (purpose, id) in keys.iter().copied() {
            if terms.iter().any(|term| term.id == id) {
                return Err(TermError::Known(id));
            }
            if terms.len() >= TERMS {
                return Err(TermError::Full);
            }
            for term in terms.iter_mut().filter(|term| term.purpose == purpose && term.state == KeyState::Active) {
                (term.state, term.since) = (KeyState::Retiring, now);
            }
            terms.push(KeyTerm { purpose, id, state: KeyState::Active, since: now });
        }
        Ok(self.next(own, terms))
    }

    /// The document after this one, whose hash is `own`, without the retiring key `id`.
    ///
    /// # Errors
    /// It has no such key, or the key is active.
    pub fn without_term(&self, own: Digest, id: KeyId) -> Result<Self, TermError> {
        let mut terms = self.terms.clone();
        terms.retain(|term| term.id != id || term.state == KeyState::Active);
        if terms.len() == self.terms.len() { Err(TermError::NotRetiring(id)) } else { Ok(self.next(own, terms)) }
    }

    fn next(&self, own: Digest, terms: Vec<KeyTerm>) -> Self {
        let earlier = std::iter::once(own).chain(self.earlier.iter().copied()).take(EARLIER).collect();
        Self { number: self.number.saturating_add(1), earlier, terms }
    }

    /// Whether this document, whose hash is `own`, is the one of `mark` or comes after it. One that was put back from before
    /// it, or that belongs to another history, does not; nor does one more than 256 documents later.
    pub fn is_at_or_after(&self, own: Digest, mark: KeyringMark) -> bool {
        match self.number.checked_sub(mark.number) {
            Some(0) => own == mark.hash,
            Some(behind @ 1..) => {
                let place = usize::try_from(behind - 1).unwrap_or(usize::MAX);
                self.earlier.get(place) == Some(&mark.hash)
            }
            _ => false,
        }
    }

    /// Its bytes, which are sealed and hashed. No two documents have the same.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + self.earlier.len() * 32 + self.terms.len() * 26);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&u16::try_from(self.earlier.len()).unwrap_or(u16::MAX).to_be_bytes());
        for hash in &self.earlier {
            bytes.extend_from_slice(hash.as_bytes());
        }
        bytes.extend_from_slice(&u16::try_from(self.terms.len()).unwrap_or(u16::MAX).to_be_bytes());
        for term in &self.terms {
            bytes.push(term.purpose.byte());
            bytes.push(u8::from(term.state == KeyState::Active));
            bytes.extend_from_slice(term.id.as_bytes());
            bytes.extend_from_slice(&term.since.as_millis().to_be_bytes());
        }
        bytes
    }

    /// The document of these bytes; `None`: they are none, or break a rule of such documents.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let number = i64::from_be_bytes(*number);
        let (count, mut rest) = rest.split_first_chunk::<2>()?;
        let mut earlier = Vec::new();
        for _ in 0..u16::from_be_bytes(*count) {
            let (hash, after) = rest.split_first_chunk::<32>()?;
            earlier.push(Digest::from_bytes(*hash));
            rest = after;
        }
        let (count, mut rest) = rest.split_first_chunk::<2>()?;
        let mut terms = Vec::new();
        for _ in 0..u16::from_be_bytes(*count) {
            let ([purpose, state], after) = rest.split_first_chunk::<2>()?;
            let (id, after) = after.split_first_chunk::<16>()?;
            let (since, after) = after.split_first_chunk::<8>()?;
            terms.push(KeyTerm {
                purpose: TermPurpose::ALL.into_iter().find(|known| known.byte() == *purpose)?,
                id: KeyId::from_bytes(*id),
                state: match state {
                    0 => KeyState::Retiring,
                    1 => KeyState::Active,
                    _ => return None,
                },
                since: Timestamp::from_millis(i64::from_be_bytes(*since)),
            });
            rest = after;
        }
        let read = Self { number, earlier, terms };
        (rest.is_empty() && read.is_sound()).then_some(read)
    }

    /// Whether it keeps the rules: one active term for each purpose, no key twice, a hash of each document before, as many as
    /// it holds.
    fn is_sound(&self) -> bool {
        let one_active = TermPurpose::ALL.into_iter().all(|purpose| {
            let active = |term: &&KeyTerm| term.purpose == purpose && term.state == KeyState::Active;
            self.terms.iter().filter(active).count() == 1
        });
        let no_key_twice =
            (1..).zip(&self.terms).all(|(after, term)| self.terms.iter().skip(after).all(|other| other.id != term.id));
        let before = usize::try_from(self.number.saturating_sub(1)).unwrap_or(usize::MAX);
        let all_earlier = self.number >= 1 && self.earlier.len() == before.min(EARLIER);
        one_active && no_key_twice && all_earlier && self.terms.len() <= TERMS
    }
}
