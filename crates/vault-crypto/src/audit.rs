//! Codes over audit records and checkpoints: HMAC-SHA-256 over every field. Checkpoints are chained by SHA-256, which
//! anybody can compute; their codes need the key.

use crate::derive::Label;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use sha2::{Digest as _, Sha256};
use vault_core::audit::{AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint};
use vault_core::digest::Digest;
use vault_core::id::KeyId;
use vault_core::port::AuditSealer;

/// Before the content of a checkpoint, where it is hashed.
const CHECKPOINT_PREFIX: &[u8] = b"orgvault/1/audit checkpoint";

/// Gives audit records and checkpoints their code under the newest audit key, and checks codes under any.
pub struct HmacAuditSealer {
    newest: Keys,
    older: Vec<Keys>,
}

/// What an audit key is used for.
struct Keys {
    id: KeyId,
    record: MacKey,
    checkpoint: MacKey,
}

impl Keys {
    fn new((id, key): (KeyId, &SymmetricKey)) -> Self {
        Self { id, record: Label::AuditRecord.mac_key(key), checkpoint: Label::AuditCheckpoint.mac_key(key) }
    }
}

impl HmacAuditSealer {
    pub(crate) fn new<'a>(
        newest: (KeyId, &SymmetricKey),
        older: impl IntoIterator<Item = (KeyId, &'a SymmetricKey)>,
    ) -> Self {
        Self { newest: Keys::new(newest), older: older.into_iter().map(Keys::new).collect() }
    }

    /// Whether the record is unchanged. Compared in constant time.
    pub fn verify(&self, sealed: &SealedAuditRecord) -> bool {
        self.is_code(sealed.key, &sealed.record.to_authenticated_bytes(), sealed.code)
    }

    fn keys(&self, id: KeyId) -> Option<&Keys> {
        std::iter::once(&self.newest).chain(&self.older).find(|keys| keys.id == id)
    }
}

impl AuditSealer for HmacAuditSealer {
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord {
        let code = code(&self.newest.record, &record.to_authenticated_bytes());
        SealedAuditRecord { code, key: self.newest.id, record }
    }

    fn code(&self, bytes: &[u8]) -> (KeyId, Digest) {
        (self.newest.id, code(&self.newest.record, bytes))
    }

    fn is_code(&self, key: KeyId, bytes: &[u8], claimed: Digest) -> bool {
        self.keys(key).is_some_and(|keys| code(&keys.record, bytes) == claimed)
    }

    fn hash_checkpoint(&self, content: &[u8]) -> Digest {
        Digest::from_bytes(Sha256::new().chain_update(CHECKPOINT_PREFIX).chain_update(content).finalize().into())
    }

    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint {
        let code = code(&self.newest.checkpoint, &checkpoint.to_authenticated_bytes());
        SealedCheckpoint { code, key: self.newest.id, checkpoint }
    }

    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool {
        let bytes = sealed.checkpoint.to_authenticated_bytes();
        self.keys(sealed.key).is_some_and(|keys| code(&keys.checkpoint, &bytes) == sealed.code)
    }
}

fn code(key: &MacKey, bytes: &[u8]) -> Digest {
    Digest::from_bytes(key.code([bytes]))
}

#[cfg(test)]
mod tests;
