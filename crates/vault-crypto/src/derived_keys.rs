//! The keys derived from an audit key and from a lookup key.

use crate::derive::Label;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use vault_core::digest::{Digest, DigestPurpose};

/// The keys derived from one audit key.
pub(crate) struct AuditKeys {
    pub(crate) record: MacKey,
    pub(crate) checkpoint: MacKey,
    pub(crate) anchor: MacKey,
}

impl AuditKeys {
    /// Derives the keys from an audit key.
    pub(crate) fn derive(key: &SymmetricKey) -> Self {
        let labels = [Label::AuditRecord, Label::AuditCheckpoint, Label::Anchor];
        let [record, checkpoint, anchor] = labels.map(|label| label.mac_key(key));
        Self { record, checkpoint, anchor }
    }
}

/// Keys derived from a lookup key.
pub(crate) struct LookUpKeys {
    network: MacKey,
    idempotent_body: MacKey,
    label: MacKey,
    /// Parent of the keys for rarely used purposes.
    other: SymmetricKey,
}

impl LookUpKeys {
    /// Derives the keys.
    pub(crate) fn derive(lookup: &SymmetricKey) -> Self {
        let looked_up = |purpose| Label::Digest(purpose).mac_key(lookup);
        Self {
            network: looked_up(DigestPurpose::Network),
            idempotent_body: looked_up(DigestPurpose::IdempotentBody),
            label: looked_up(DigestPurpose::Label),
            other: Label::OtherDigests.derive(lookup),
        }
    }

    /// Returns the digest of a lookup value.
    pub(crate) fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        let key = match purpose {
            DigestPurpose::Network => &self.network,
            DigestPurpose::IdempotentBody => &self.idempotent_body,
            DigestPurpose::Label => &self.label,
            other => return Digest::from_bytes(Label::Digest(other).mac_key(&self.other).mac_of_parts(parts)),
        };
        Digest::from_bytes(key.mac_of_parts(parts))
    }
}
