//! Keyed digests and audit codes that anybody could compute.

use crate::clock::scramble;
use uuid::Uuid;
use vault_core::audit::{AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint};
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::id::KeyId;
use vault_core::port::{AuditSealer, KeyedDigester};

/// Digests by a simple 64-bit mixing function: fit to be looked up in tests, worthless against anybody.
#[derive(Clone, Copy, Debug, Default)]
pub struct FakeDigester {
    key: u64,
}

impl FakeDigester {
    /// The digests under `key`.
    pub const fn keyed(key: u64) -> Self {
        Self { key }
    }
}

impl KeyedDigester for FakeDigester {
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        digest(self.key, purpose.label(), parts)
    }
}

/// Codes audit entries with a digest that anybody could compute.
#[derive(Clone, Copy, Debug, Default)]
pub struct FakeAuditSealer;

impl FakeAuditSealer {
    /// The id that its codes name as their key.
    pub const KEY: KeyId = KeyId::from_uuid(Uuid::from_u128(0x0a0d_1770_0000_4000_8000_0000_0000_0001));
}

impl AuditSealer for FakeAuditSealer {
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord {
        let code = digest(0, "audit", &[&record.to_authenticated_bytes()]);
        SealedAuditRecord { record, key: Self::KEY, code }
    }

    fn is_code(&self, key: KeyId, bytes: &[u8], code: Digest) -> bool {
        key == Self::KEY && digest(0, "audit", &[bytes]) == code
    }

    fn hash_checkpoint(&self, content: &[u8]) -> Digest {
        digest(0, "checkpoint hash", &[content])
    }

    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint {
        let code = digest(0, "checkpoint", &[&checkpoint.to_authenticated_bytes()]);
        SealedCheckpoint { checkpoint, key: Self::KEY, code }
    }

    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool {
        let bytes = sealed.checkpoint.to_authenticated_bytes();
        sealed.key == Self::KEY && digest(0, "checkpoint", &[&bytes]) == sealed.code
    }
}

/// Four lanes over all bytes, the length of each part before it.
pub(super) fn digest(key: u64, label: &str, parts: &[&[u8]]) -> Digest {
    let mut bytes = [0; 32];
    for (lane, out) in (0_u64..).zip(bytes.chunks_exact_mut(8)) {
        let mut state = scramble(key ^ scramble(lane));
        for part in std::iter::once(&label.as_bytes()).chain(parts) {
            state = scramble(state ^ u64::try_from(part.len()).unwrap_or(u64::MAX));
            for byte in *part {
                state = scramble(state ^ u64::from(*byte));
            }
        }
        out.copy_from_slice(&state.to_be_bytes());
    }
    Digest::from_bytes(bytes)
}
