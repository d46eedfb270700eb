//! The keyring: the set of an instance's keys as a numbered document.
//!
//! The document lists the valid keys, and is sealed together with all of them but the active instance key, with which it is
//! sealed. Only a process with that key can create one. Each document contains the hashes of its predecessors, so that a rollback
//! can be distinguished from a successor.

use crate::digest::Digest;
use crate::id::KeyId;
use crate::sealed::KeyState;
use crate::time::Timestamp;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Number of hashes of earlier documents in a document. A server accepts a document if its own is at most this many
/// versions behind.
const EARLIER: usize = 256;
/// Maximum number of keys in a document.
const MAX_ENTRIES: usize = 1_024;

/// Purpose of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum KeyPurpose {
    /// The instance key: wraps organization keys, seals passwords and TOTP secrets, and authenticates rows and cursors.
    Instance,
    /// Lookup digests of rows, and MACs of rows that do not name their key.
    Lookup,
    /// MACs of audit entries, checkpoints and the anchor.
    Audit,
    /// Access tokens.
    Token,
}

named!(KeyPurpose);

impl KeyPurpose {
    /// All but the instance key, with which they are replaced.
    pub const OTHERS: [Self; 3] = [Self::Lookup, Self::Audit, Self::Token];

    const fn byte(self) -> u8 {
        match self {
            Self::Instance => 1,
            Self::Lookup => 2,
            Self::Audit => 3,
            Self::Token => 4,
        }
    }
}

/// A key of the keyring with its permitted use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyringEntry {
    /// Purpose.
    pub purpose: KeyPurpose,
    /// ID of the key.
    pub id: KeyId,
    /// [`KeyState::Active`]: for all operations. [`KeyState::Retiring`]: only for decryption and verification.
    pub state: KeyState,
    /// Time since which it is in that state.
    pub since: Timestamp,
}

impl KeyringEntry {
    /// Time after the replacement of a key in which servers may still use it, in seconds. A server reads the keys once
    /// a second, and no transaction takes as long as a minute.
    pub const DRAINED_SECONDS: i64 = 60;

    /// Minimum age of a key before anything is signed with it, in seconds. By then every server has read the document
    /// that lists it, because each reads it once a second. No server then encounters a token or an audit entry with an
    /// unknown key.
    pub const SETTLED_SECONDS: i64 = 5;

    /// Returns whether it is so old at `now` that every server has loaded it.
    pub fn is_settled(&self, now: Timestamp) -> bool {
        self.since.plus_seconds(Self::SETTLED_SECONDS) <= now
    }

    /// Returns whether it is retiring and no longer used for anything new at `now`.
    pub fn is_drained(&self, now: Timestamp) -> bool {
        self.state == KeyState::Retiring && self.since.plus_seconds(Self::DRAINED_SECONDS) <= now
    }
}

/// Number and hash of a document, which identify it among all documents of its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyringRef {
    /// Number: 1 for the first document, incremented for each successor.
    pub number: i64,
    /// SHA-256 hash of the document.
    pub hash: Digest,
}

/// The set of an instance's keys. Each purpose has one active key and any number of retiring ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyringDocument {
    number: i64,
    /// Hashes of the previous documents, newest first.
    earlier: Vec<Digest>,
    entries: Vec<KeyringEntry>,
}

/// Reason why a keyring cannot be changed as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// The key is or was in the keyring.
    #[error("key {0} is in the keyring already")]
    Known(KeyId),
    /// The key is not in the keyring, or it is active.
    #[error("key {0} is not a retiring key of the keyring: only a retiring key is dropped")]
    NotRetiring(KeyId),
    /// The keyring has the maximum number of keys.
    #[error("the keyring has {MAX_ENTRIES} keys already, the most it can have; drop retiring keys first")]
    Full,
}

impl KeyringDocument {
    /// Creates the first document of an instance with these active keys, in the order of [`KeyPurpose::ALL`].
    pub fn first(keys: [KeyId; KeyPurpose::ALL.len()], now: Timestamp) -> Self {
        let entry = |(purpose, id)| KeyringEntry { purpose, id, state: KeyState::Active, since: now };
        let entries = KeyPurpose::ALL.into_iter().zip(keys).map(entry).collect();
        Self { number: 1, earlier: Vec::new(), entries }
    }

    /// Returns the number of the document.
    pub const fn number(&self) -> i64 {
        self.number
    }

    /// Returns the keys. Those of one purpose are in the order of their creation.
    pub fn entries(&self) -> &[KeyringEntry] {
        &self.entries
    }

    /// Returns the active key of a purpose.
    pub fn active(&self, purpose: KeyPurpose) -> Option<&KeyringEntry> {
        self.entries.iter().find(|entry| entry.purpose == purpose && entry.state == KeyState::Active)
    }

    /// Returns the retiring keys.
    pub fn retiring(&self) -> impl Iterator<Item = &KeyringEntry> {
        self.entries.iter().filter(|entry| entry.state == KeyState::Retiring)
    }

    /// Returns whether `id` is an active or retiring key of this purpose.
    pub fn has(&self, purpose: KeyPurpose, id: KeyId) -> bool {
        self.entries.iter().any(|entry| entry.purpose == purpose && entry.id == id)
    }

    /// Returns the successor of this document, whose hash is `own`, in which `keys` are the active keys of their
    /// purposes and the previous ones are retiring.
    ///
    /// # Errors
    /// One of the keys is in the keyring already, or the keyring is full.
    pub fn with_entries(
        &self,
        own: Digest,
        keys: &[(KeyPurpose, KeyId)],
        now: Timestamp,
    ) -> Result<Self, KeyringError> {
        let mut entries = self.entries.clone();
        for (purpose, id) in keys.iter().copied() {
            if entries.iter().any(|entry| entry.id == id) {
                return Err(KeyringError::Known(id));
            }
            if entries.len() >= MAX_ENTRIES {
                return Err(KeyringError::Full);
            }
            let is_replaced = |entry: &&mut KeyringEntry| entry.purpose == purpose && entry.state == KeyState::Active;
            for entry in entries.iter_mut().filter(is_replaced) {
                (entry.state, entry.since) = (KeyState::Retiring, now);
            }
            entries.push(KeyringEntry { purpose, id, state: KeyState::Active, since: now });
        }
        Ok(self.next(own, entries))
    }

    /// Returns the successor of this document, whose hash is `own`, without the retiring key `id`.
    ///
    /// # Errors
    /// The keyring does not contain the key, or the key is active.
    pub fn without_entry(&self, own: Digest, id: KeyId) -> Result<Self, KeyringError> {
        let mut entries = self.entries.clone();
        entries.retain(|entry| entry.id != id || entry.state == KeyState::Active);
        if entries.len() == self.entries.len() {
            Err(KeyringError::NotRetiring(id))
        } else {
            Ok(self.next(own, entries))
        }
    }

    fn next(&self, own: Digest, entries: Vec<KeyringEntry>) -> Self {
        let earlier = std::iter::once(own).chain(self.earlier.iter().copied()).take(EARLIER).collect();
        Self { number: self.number.saturating_add(1), earlier, entries }
    }

    /// Returns whether this document, whose hash is `own`, is the one of `mark` or a successor. Returns `false` for an
    /// older document, for one of another history, and for one that is more than 256 numbers ahead.
    pub fn is_at_or_after(&self, own: Digest, mark: KeyringRef) -> bool {
        match self.number.checked_sub(mark.number) {
            Some(0) => own == mark.hash,
            Some(behind @ 1..) => {
                let place = usize::try_from(behind - 1).unwrap_or(usize::MAX);
                self.earlier.get(place) == Some(&mark.hash)
            }
            _ => false,
        }
    }

    /// Returns the encoding that is hashed, and sealed together with the keys. It is unique for each document.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + self.earlier.len() * 32 + self.entries.len() * 26);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&u16::try_from(self.earlier.len()).unwrap_or(u16::MAX).to_be_bytes());
        for hash in &self.earlier {
            bytes.extend_from_slice(hash.as_bytes());
        }
        bytes.extend_from_slice(&u16::try_from(self.entries.len()).unwrap_or(u16::MAX).to_be_bytes());
        for entry in &self.entries {
            bytes.push(entry.purpose.byte());
            bytes.push(u8::from(entry.state == KeyState::Active));
            bytes.extend_from_slice(entry.id.as_bytes());
            bytes.extend_from_slice(&entry.since.as_millis().to_be_bytes());
        }
        bytes
    }

    /// Decodes a document. Returns `None` if the bytes are malformed or violate a rule of such documents.
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
        let mut entries = Vec::new();
        for _ in 0..u16::from_be_bytes(*count) {
            let ([purpose, state], after) = rest.split_first_chunk::<2>()?;
            let (id, after) = after.split_first_chunk::<16>()?;
            let (since, after) = after.split_first_chunk::<8>()?;
            entries.push(KeyringEntry {
                purpose: KeyPurpose::ALL.into_iter().find(|known| known.byte() == *purpose)?,
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
        let read = Self { number, earlier, entries };
        (rest.is_empty() && read.mac_is_valid()).then_some(read)
    }

    /// Returns whether the rules are met: one active key for each purpose, no duplicate key, and a hash of each previous
    /// document, up to the maximum.
    fn mac_is_valid(&self) -> bool {
        let one_active = KeyPurpose::ALL.into_iter().all(|purpose| {
            let active = |entry: &&KeyringEntry| entry.purpose == purpose && entry.state == KeyState::Active;
            self.entries.iter().filter(active).count() == 1
        });
        let no_key_twice = (1..)
            .zip(&self.entries)
            .all(|(after, entry)| self.entries.iter().skip(after).all(|other| other.id != entry.id));
        let before = usize::try_from(self.number.saturating_sub(1)).unwrap_or(usize::MAX);
        let all_earlier = self.number >= 1 && self.earlier.len() == before.min(EARLIER);
        one_active && no_key_twice && all_earlier && self.entries.len() <= MAX_ENTRIES
    }
}
