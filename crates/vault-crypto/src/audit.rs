//! Codes over audit records and checkpoints: HMAC-SHA-256 over every field. Checkpoints are chained by SHA-256, which
//! anybody can compute; their codes need the key.

use crate::derive::Label;
use crate::instance_keys::InstanceKeyring;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use vault_core::audit::{AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint};
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::id::KeyId;
use vault_core::port::AuditSealer;
use vault_core::time::Timestamp;

/// Before the content of a checkpoint, where it is hashed.
const CHECKPOINT_PREFIX: &[u8] = b"orgvault/1/audit checkpoint";

/// Gives audit records and checkpoints their code under the audit key of their time, and checks codes under any.
pub struct HmacAuditSealer {
    keys: Arc<InstanceKeyring>,
}

/// What an audit key is used for.
pub(crate) struct AuditKeys {
    record: MacKey,
    checkpoint: MacKey,
    /// The codes of anchors.
    pub(crate) anchor: MacKey,
    /// The states of rows that entries record.
    pub(crate) state: MacKey,
}

impl AuditKeys {
    /// Derives them.
    pub(crate) fn derive(key: &SymmetricKey) -> Self {
        let labels =
            [Label::AuditRecord, Label::AuditCheckpoint, Label::Anchor, Label::Digest(DigestPurpose::RecordedState)];
        let [record, checkpoint, anchor, state] = labels.map(|label| label.mac_key(key));
        Self { record, checkpoint, anchor, state }
    }
}

impl HmacAuditSealer {
    pub(crate) const fn new(keys: Arc<InstanceKeyring>) -> Self {
        Self { keys }
    }

    /// Whether the record is unchanged. Compared in constant time.
    pub fn verify(&self, sealed: &SealedAuditRecord) -> bool {
        self.is_code(sealed.key, &sealed.record.to_authenticated_bytes(), sealed.code)
    }
}

impl AuditSealer for HmacAuditSealer {
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord {
        let purposes = self.keys.purposes();
        let term = purposes.audit.settled_at(record.at);
        SealedAuditRecord { code: code(&term.key.record, &record.to_authenticated_bytes()), key: term.id(), record }
    }

    fn code(&self, bytes: &[u8], now: Timestamp) -> (KeyId, Digest) {
        let purposes = self.keys.purposes();
        let term = purposes.audit.settled_at(now);
        (term.id(), code(&term.key.record, bytes))
    }

    fn is_code(&self, key: KeyId, bytes: &[u8], claimed: Digest) -> bool {
        self.keys.purposes().audit.find(key).is_some_and(|keys| code(&keys.record, bytes) == claimed)
    }

    fn hash_checkpoint(&self, content: &[u8]) -> Digest {
        Digest::from_bytes(Sha256::new().chain_update(CHECKPOINT_PREFIX).chain_update(content).finalize().into())
    }

    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint {
        let purposes = self.keys.purposes();
        let term = purposes.audit.settled_at(checkpoint.at);
        SealedCheckpoint {
            code: code(&term.key.checkpoint, &checkpoint.to_authenticated_bytes()),
            key: term.id(),
            checkpoint,
        }
    }

    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool {
        let bytes = sealed.checkpoint.to_authenticated_bytes();
        self.keys.purposes().audit.find(sealed.key).is_some_and(|keys| code(&keys.checkpoint, &bytes) == sealed.code)
    }
}

fn code(key: &MacKey, bytes: &[u8]) -> Digest {
    Digest::from_bytes(key.code([bytes]))
}

#[cfg(test)]
mod tests;
