//! Randomness from the operating system.

use crate::key::SymmetricKey;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::{Builder, Uuid};
use vault_core::id::KeyId;
use vault_core::port::{Entropy, NoEntropy};
use zeroize::Zeroizing;

/// Random number generator of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is the port's adapter")]
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        getrandom::fill(bytes).map_err(|_| NoEntropy)
    }
}

/// Generates a random key.
pub(crate) fn random_key(entropy: &dyn Entropy) -> Result<SymmetricKey, NoEntropy> {
    SymmetricKey::try_fill(|bytes| entropy.fill(bytes))
}

/// Generates an id of 122 random bits (UUID version 4, RFC 9562).
pub(crate) fn random_uuid(entropy: &dyn Entropy) -> Result<Uuid, NoEntropy> {
    let mut bytes = [0; 16];
    entropy.fill(&mut bytes)?;
    Ok(Builder::from_random_bytes(bytes).into_uuid())
}

/// Generates a random key id.
pub(crate) fn random_key_id(entropy: &dyn Entropy) -> Result<KeyId, NoEntropy> {
    random_uuid(entropy).map(KeyId::from_uuid)
}

/// Randomness for one operation, read with one system call.
///
/// An operation may need randomness several times, and a call takes as long as sealing. No byte is used twice; the rest
/// is wiped.
pub(crate) struct Drawn<'a, const LENGTH: usize> {
    bytes: Zeroizing<[u8; LENGTH]>,
    given: AtomicUsize,
    source: &'a dyn Entropy,
}

impl<'a, const LENGTH: usize> Drawn<'a, LENGTH> {
    /// Reads `LENGTH` bytes.
    pub(crate) fn from(source: &'a dyn Entropy) -> Result<Self, NoEntropy> {
        let mut bytes = Zeroizing::new([0; LENGTH]);
        source.fill(bytes.as_mut_slice())?;
        Ok(Self { bytes, given: AtomicUsize::new(0), source })
    }
}

impl<const LENGTH: usize> Entropy for Drawn<'_, LENGTH> {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        let from = self.given.fetch_add(bytes.len(), Ordering::Relaxed);
        match from.checked_add(bytes.len()).and_then(|to| self.bytes.get(from..to)) {
            Some(drawn) => {
                bytes.copy_from_slice(drawn);
                Ok(())
            }
            None => self.source.fill(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
