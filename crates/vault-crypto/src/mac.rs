//! HMAC-SHA-256 (RFC 2104) that hashes the two blocks of the key once per key instead of once per MAC.

use crate::key::SymmetricKey;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroize as _;

/// An HMAC key. Its state is wiped when dropped.
pub(crate) struct MacKey(Hmac<Sha256>);

impl MacKey {
    /// Hashes the two blocks of the key.
    pub(crate) fn new(key: &SymmetricKey) -> Self {
        // RFC 2104: a key shorter than a block is padded with zeros, so this cannot fail.
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        block[..SymmetricKey::LENGTH].copy_from_slice(key.expose()); // the key
        let mac = Self(Hmac::new(&block));
        block.as_mut_slice().zeroize();
        mac
    }

    /// Returns the MAC of the concatenated parts.
    pub(crate) fn mac<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// Returns the MAC of the parts, each prefixed with its length as 8 bytes, big-endian.
    pub(crate) fn mac_of_parts(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests;

/// Returns the SHA-256 digest of `prefix` and `parts`, each element prefixed with its length as 8 bytes, big-endian.
pub(crate) fn hash_of_parts(prefix: &[&[u8]], parts: &[&[u8]]) -> [u8; 32] {
    let hash = prefix
        .iter()
        .chain(parts)
        .fold(Sha256::new(), |hash, part| hash.chain_update((part.len() as u64).to_be_bytes()).chain_update(part));
    hash.finalize().into()
}
