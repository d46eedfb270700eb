//! Keyed digests and audit MACs without any security.

use crate::clock::scramble;
use async_trait::async_trait;
use uuid::Uuid;
use vault_core::audit::{AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint};
use vault_core::digest::{Digest, DigestPurpose, LookupDigests, RowMac};
use vault_core::entity::EntityKey;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{AuditSealer, EntitySealer, KeyedDigester, SealError};
use vault_core::sealed::{Blob, OrganizationKeys};
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Digests by a simple 64-bit mixing function: usable for lookups in tests, and without any security.
#[derive(Clone, Copy, Debug, Default)]
pub struct FakeDigester {
    key: u64,
}

impl FakeDigester {
    /// The ID of the first key, to which `key` is added.
    const FIRST_KEY: u128 = 0x1257_a4ce_0000_4000_8000_0000_0000_0000;

    /// Creates the digests under `key`.
    pub const fn keyed(key: u64) -> Self {
        Self { key }
    }

    const fn id(&self) -> KeyId {
        KeyId::from_uuid(Uuid::from_u128(Self::FIRST_KEY | self.key as u128))
    }
}

#[async_trait]
impl KeyedDigester for FakeDigester {
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        digest(if purpose.is_keyed() { self.key } else { 0 }, purpose.label(), parts)
    }

    fn lookup(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> LookupDigests {
        self.digest(purpose, parts).into()
    }

    fn fits(&self, purpose: DigestPurpose, parts: &[&[u8]], digest: &Digest) -> bool {
        self.digest(purpose, parts) == *digest
    }

    fn active_key(&self) -> KeyId {
        self.id()
    }

    fn sign(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> RowMac {
        RowMac { key: self.id(), mac: self.digest(purpose, parts) }
    }

    fn is_signed(&self, purpose: DigestPurpose, parts: &[&[u8]], claimed: &RowMac) -> bool {
        claimed.key == self.id() && claimed.mac == self.digest(purpose, parts)
    }

    async fn load_keys(&self, _keys: &[KeyId]) -> Result<(), SealError> {
        Ok(())
    }

    async fn refresh(&self) -> Result<(), SealError> {
        Ok(())
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        Ok(())
    }
}

/// Documents in plaintext, after a digest of their place.
impl EntitySealer for FakeDigester {
    fn active_key(&self) -> KeyId {
        self.id()
    }

    fn has_key_of(&self, sealed: &Blob) -> bool {
        sealed.key().is_none_or(|key| key == self.id())
    }

    fn seal(&self, key: &EntityKey, version: i64, document: &[u8]) -> Result<Blob, SealError> {
        let id = self.id();
        let place = self.place(key, version, document);
        Ok(Blob::from_bytes([&[1, 1], id.as_bytes().as_slice(), place.as_bytes(), document].concat()))
    }

    fn open(&self, key: &EntityKey, version: i64, sealed: &Blob) -> Result<Zeroizing<Vec<u8>>, &'static str> {
        let (place, document) =
            sealed.as_bytes().get(18..).and_then(|rest| rest.split_at_checked(32)).ok_or("it is cut")?;
        let is_its = self.place(key, version, document).as_bytes() == place;
        if is_its { Ok(Zeroizing::new(document.to_vec())) } else { Err("it belongs to another row") }
    }

    fn rewrap_keys(
        &self,
        _organization: OrganizationId,
        _keys: &OrganizationKeys,
    ) -> Result<Option<OrganizationKeys>, &'static str> {
        Ok(None)
    }
}

impl FakeDigester {
    fn place(&self, key: &EntityKey, version: i64, document: &[u8]) -> Digest {
        let (organization, kind, id) = key.order();
        let parts =
            [organization.as_bytes().as_slice(), kind.as_bytes(), id.as_bytes(), &version.to_be_bytes(), document];
        digest(self.key, "entity", &parts)
    }
}

/// Signs audit entries with a digest that is not secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct FakeAuditSealer;

impl FakeAuditSealer {
    /// The key ID in its MACs.
    pub const KEY: KeyId = KeyId::from_uuid(Uuid::from_u128(0x0a0d_1770_0000_4000_8000_0000_0000_0001));
}

impl AuditSealer for FakeAuditSealer {
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord {
        let mac = digest(0, "audit", &[&record.to_authenticated_bytes()]);
        SealedAuditRecord { record, key: Self::KEY, mac }
    }

    fn mac(&self, bytes: &[u8], _: Timestamp) -> (KeyId, Digest) {
        (Self::KEY, digest(0, "audit", &[bytes]))
    }

    fn is_mac(&self, key: KeyId, bytes: &[u8], mac: Digest) -> bool {
        key == Self::KEY && digest(0, "audit", &[bytes]) == mac
    }

    fn hash_checkpoint(&self, content: &[u8]) -> Digest {
        digest(0, "checkpoint hash", &[content])
    }

    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint {
        let mac = digest(0, "checkpoint", &[&checkpoint.to_authenticated_bytes()]);
        SealedCheckpoint { checkpoint, key: Self::KEY, mac }
    }

    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool {
        let bytes = sealed.checkpoint.to_authenticated_bytes();
        sealed.key == Self::KEY && digest(0, "checkpoint", &[&bytes]) == sealed.mac
    }
}

/// Hashes all bytes in four lanes, with the length of each part before it.
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
