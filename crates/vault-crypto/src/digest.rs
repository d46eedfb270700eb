//! Keyed digests: HMAC-SHA-256 with one key per purpose, each derived once.

use crate::instance_keys::InstanceKeyring;
use crate::mac;
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::digest::{Digest, DigestPurpose, LookupDigests, RowMac};
use vault_core::id::KeyId;
use vault_core::port::{Clock, KeyedDigester, SealError};

/// Computes keyed digests.
///
/// MACs of cursors use keys derived from the instance key. All other digests use the lookup key: such a digest does not name its
/// key, so it may be under any existing key.
pub struct HmacDigester {
    keys: Arc<InstanceKeyring>,
    clock: Arc<dyn Clock>,
}

impl HmacDigester {
    pub(crate) const fn new(keys: Arc<InstanceKeyring>, clock: Arc<dyn Clock>) -> Self {
        Self { keys, clock }
    }
}

/// Returns the digest of a purpose that has no key.
fn plain(purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
    Digest::from_bytes(mac::hash_of_parts(&[b"orgvault/1/digest", purpose.label().as_bytes()], parts))
}

#[async_trait]
impl KeyedDigester for HmacDigester {
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        if !purpose.is_keyed() {
            return plain(purpose, parts);
        }
        if let Some(key) = self.keys.active().mac_key(purpose) {
            return Digest::from_bytes(key.mac_of_parts(parts));
        }
        let lookup = &self.keys.purposes().lookup;
        // With a single key the clock is not needed.
        let entry = if lookup.is_one() { lookup.active() } else { lookup.settled_at(self.clock.now()) };
        entry.key.digest(purpose, parts)
    }

    fn lookup(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> LookupDigests {
        if !purpose.is_keyed() || self.keys.active().mac_key(purpose).is_some() {
            return self.digest(purpose, parts).into();
        }
        let lookup = &self.keys.purposes().lookup;
        if lookup.is_one() {
            return lookup.active().key.digest(purpose, parts).into();
        }
        let current = lookup.settled_at(self.clock.now());
        let others = lookup.all().filter(|entry| entry.id() != current.id());
        LookupDigests::new(current.key.digest(purpose, parts), others.map(|entry| entry.key.digest(purpose, parts)))
    }

    fn fits(&self, purpose: DigestPurpose, parts: &[&[u8]], digest: &Digest) -> bool {
        if !purpose.is_keyed() || self.keys.active().mac_key(purpose).is_some() {
            return self.digest(purpose, parts) == *digest;
        }
        self.keys.purposes().lookup.all().any(|entry| entry.key.digest(purpose, parts) == *digest)
    }

    fn active_key(&self) -> KeyId {
        self.keys.active().id()
    }

    fn sign(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> RowMac {
        let active = self.keys.active();
        let mac = match active.mac_key(purpose) {
            Some(key) => Digest::from_bytes(key.mac_of_parts(parts)),
            None => self.digest(purpose, parts),
        };
        RowMac { key: active.id(), mac }
    }

    fn is_signed(&self, purpose: DigestPurpose, parts: &[&[u8]], claimed: &RowMac) -> bool {
        let Some(keys) = self.keys.find(claimed.key) else { return false };
        keys.mac_key(purpose).is_some_and(|key| Digest::from_bytes(key.mac_of_parts(parts)) == claimed.mac)
    }

    async fn load_keys(&self, keys: &[KeyId]) -> Result<(), SealError> {
        self.keys.load_keys(keys).await
    }

    async fn refresh(&self) -> Result<(), SealError> {
        self.keys.refresh(self.clock.now()).await
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        self.keys.reload_keys().await
    }
}

#[cfg(test)]
mod tests;
