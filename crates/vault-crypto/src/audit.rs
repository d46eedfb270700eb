//! MACs of audit records and checkpoints: HMAC-SHA-256 over every field. SHA-256 chains the checkpoints and needs no
//! key. Their MACs need the key.

use crate::instance_keys::InstanceKeyring;
use crate::mac::MacKey;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use vault_core::audit::{AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint};
use vault_core::digest::Digest;
use vault_core::id::KeyId;
use vault_core::port::AuditSealer;
use vault_core::time::Timestamp;

/// The domain-separation prefix of checkpoint hashes.
const CHECKPOINT_PREFIX: &[u8] = b"orgvault/1/audit checkpoint";

/// The MAC of audit records and checkpoints: computed under the audit key of their time, verified under any audit key.
pub struct HmacAuditSealer {
    keys: Arc<InstanceKeyring>,
}

impl HmacAuditSealer {
    pub(crate) const fn new(keys: Arc<InstanceKeyring>) -> Self {
        Self { keys }
    }

    /// Returns whether the MAC of the record verifies. The comparison takes constant time.
    pub fn verify(&self, sealed: &SealedAuditRecord) -> bool {
        self.is_mac(sealed.key, &sealed.record.to_authenticated_bytes(), sealed.mac)
    }
}

impl AuditSealer for HmacAuditSealer {
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord {
        let purposes = self.keys.purposes();
        let entry = purposes.audit.settled_at(record.at);
        SealedAuditRecord { mac: mac(&entry.key.record, &record.to_authenticated_bytes()), key: entry.id(), record }
    }

    fn mac(&self, bytes: &[u8], now: Timestamp) -> (KeyId, Digest) {
        let purposes = self.keys.purposes();
        let entry = purposes.audit.settled_at(now);
        (entry.id(), mac(&entry.key.record, bytes))
    }

    fn is_mac(&self, key: KeyId, bytes: &[u8], claimed: Digest) -> bool {
        self.keys.purposes().audit.find(key).is_some_and(|keys| mac(&keys.record, bytes) == claimed)
    }

    fn hash_checkpoint(&self, content: &[u8]) -> Digest {
        Digest::from_bytes(Sha256::new().chain_update(CHECKPOINT_PREFIX).chain_update(content).finalize().into())
    }

    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint {
        let purposes = self.keys.purposes();
        let entry = purposes.audit.settled_at(checkpoint.at);
        SealedCheckpoint {
            mac: mac(&entry.key.checkpoint, &checkpoint.to_authenticated_bytes()),
            key: entry.id(),
            checkpoint,
        }
    }

    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool {
        let bytes = sealed.checkpoint.to_authenticated_bytes();
        self.keys.purposes().audit.find(sealed.key).is_some_and(|keys| mac(&keys.checkpoint, &bytes) == sealed.mac)
    }
}

fn mac(key: &MacKey, bytes: &[u8]) -> Digest {
    Digest::from_bytes(key.mac([bytes]))
}

#[cfg(test)]
mod tests;
