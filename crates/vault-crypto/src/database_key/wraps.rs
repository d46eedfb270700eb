//! Format of the file: `"OVDK" | version 1 | number of wraps 1 | id of the database key 16`, then each wrap as a blob
//! preceded by its length (2, big-endian). Lengths are in bytes.

use super::DatabaseKeyErrorKind;
use crate::blob;
use vault_core::id::KeyId;
use vault_core::sealed::Blob;

const MAGIC: &[u8; 4] = b"OVDK";
const VERSION: u8 = 1;
const MOST: usize = 2;

/// Wraps of one database key.
pub(super) struct Wraps {
    key: KeyId,
    wraps: Vec<(KeyId, Blob)>,
}

impl Wraps {
    /// Creates a file with one wrap.
    pub(super) fn new(key: KeyId, wrap: Blob) -> Result<Self, DatabaseKeyErrorKind> {
        let mut wraps = Self { key, wraps: Vec::new() };
        wraps.add(wrap)?;
        Ok(wraps)
    }

    /// Returns the database key's id.
    pub(super) const fn key(&self) -> KeyId {
        self.key
    }

    /// Returns the wrap under this root key.
    pub(super) fn under(&self, root: KeyId) -> Option<&Blob> {
        self.wraps.iter().find(|(id, _)| *id == root).map(|(_, wrap)| wrap)
    }

    pub(super) fn root_keys(&self) -> Vec<KeyId> {
        self.wraps.iter().map(|(id, _)| *id).collect()
    }

    /// Adds a wrap.
    pub(super) fn add(&mut self, wrap: Blob) -> Result<(), DatabaseKeyErrorKind> {
        if self.wraps.len() >= MOST {
            return Err(DatabaseKeyErrorKind::Rotating);
        }
        let root = blob::sealing_key(&wrap).ok_or(DatabaseKeyErrorKind::Malformed)?;
        self.wraps.push((root, wrap));
        Ok(())
    }

    /// Removes all wraps except the one under `root`, if that exists. Returns whether any was removed.
    pub(super) fn keep_only(&mut self, root: KeyId) -> bool {
        let before = self.wraps.len();
        if self.under(root).is_some() {
            self.wraps.retain(|(id, _)| *id == root);
        }
        self.wraps.len() < before
    }

    /// Returns the content of the file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.push(self.wraps.len() as u8); // at most MOST
        bytes.extend_from_slice(self.key.as_bytes());
        for (_, wrap) in &self.wraps {
            let wrap = wrap.as_bytes();
            debug_assert!(wrap.len() <= usize::from(u16::MAX), "a wrapped key is short");
            bytes.extend_from_slice(&(wrap.len() as u16).to_be_bytes());
            bytes.extend_from_slice(wrap);
        }
        bytes
    }

    /// Parses the content of a file.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&[VERSION])?;
        let (&count, rest) = rest.split_first()?;
        let (key, mut rest) = rest.split_first_chunk()?;
        let mut wraps = Vec::new();
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk()?;
            let (wrap, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            let wrap = Blob::from_bytes(wrap.to_vec());
            wraps.push((blob::sealing_key(&wrap)?, wrap));
            rest = after;
        }
        let whole = rest.is_empty() && (1..=MOST).contains(&wraps.len());
        whole.then(|| Self { key: KeyId::from_bytes(*key), wraps })
    }
}
