//! A keyed digester without keys.

use async_trait::async_trait;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use vault_core::digest::{Digest, DigestPurpose, LookupDigests, RowMac};
use vault_core::id::KeyId;
use vault_core::port::{KeyedDigester, SealError};

/// Distinguishes inputs with different parts, which suffices for the properties.
pub(crate) struct Hashes;

#[async_trait]
impl KeyedDigester for Hashes {
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        let mut hasher = DefaultHasher::new();
        (purpose, parts).hash(&mut hasher);
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&hasher.finish().to_be_bytes());
        Digest::from_bytes(bytes)
    }

    fn lookup(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> LookupDigests {
        self.digest(purpose, parts).into()
    }

    fn fits(&self, purpose: DigestPurpose, parts: &[&[u8]], digest: &Digest) -> bool {
        self.digest(purpose, parts) == *digest
    }

    async fn refresh(&self) -> Result<(), SealError> {
        Ok(())
    }

    fn active_key(&self) -> KeyId {
        KeyId::from_bytes([0; 16])
    }

    fn sign(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> RowMac {
        RowMac { key: self.active_key(), code: self.digest(purpose, parts) }
    }

    fn is_signed(&self, purpose: DigestPurpose, parts: &[&[u8]], code: &RowMac) -> bool {
        *code == self.sign(purpose, parts)
    }

    async fn load_keys(&self, _keys: &[KeyId]) -> Result<(), SealError> {
        Ok(())
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        Ok(())
    }
}
