//! Derives one key per purpose from a random parent key: HKDF-SHA-256 (RFC 5869) without salt, with one label per
//! purpose.

use crate::aead::AeadKey;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use hkdf::Hkdf;
use sha2::Sha256;
use vault_core::digest::DigestPurpose;
use vault_core::id::KeyId;

/// Purpose of a derived key. The label is part of the stored formats: it must never change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Label {
    /// From the root key: the id of the root key.
    RootKeyId,
    /// From the root key: wraps the instance key and the database key.
    RootWrap,
    /// From the instance key: wraps every key directly below it.
    InstanceWrap,
    /// From the instance key: seals the keyring document.
    Keyring,
    /// From the instance key: seals the documents of entities.
    Entity,
    /// From the instance key or the lookup key: a keyed digest.
    Digest(DigestPurpose),
    /// From the lookup key: the parent of digests that are not prepared at start.
    OtherDigests,
    /// From an audit key: MACs over audit records.
    AuditRecord,
    /// From an audit key: MACs over audit checkpoints.
    AuditCheckpoint,
    /// From an audit key: the MAC over the anchor.
    Anchor,
    /// From an organization's fingerprint key: fingerprints of data.
    Fingerprint,
    /// From an organization key: seals cards.
    Card,
    /// From an organization key: wraps data keys.
    OrganizationWrap,
}

impl Label {
    const PREFIX: &[u8] = b"orgvault/1/";

    /// Returns the two parts of the label. No two labels have the same concatenation.
    fn parts(self) -> [&'static str; 2] {
        match self {
            Self::RootKeyId => ["root key id", ""],
            Self::RootWrap => ["root wrap", ""],
            Self::InstanceWrap => ["instance wrap", ""],
            Self::Keyring => ["keyring", ""],
            Self::Entity => ["entity sealing", ""],
            Self::Digest(purpose) => ["digest/", purpose.label()],
            Self::OtherDigests => ["other digests", ""],
            Self::AuditRecord => ["audit record", ""],
            Self::AuditCheckpoint => ["audit checkpoint", ""],
            Self::Anchor => ["anchor", ""],
            Self::Fingerprint => ["fingerprint", ""],
            Self::Card => ["card", ""],
            Self::OrganizationWrap => ["wrap", ""],
        }
    }

    /// Derives the key for this purpose: HKDF-Extract, then the single block of HKDF-Expand that 256 bits require.
    pub(crate) fn derive(self, parent: &SymmetricKey) -> SymmetricKey {
        let [first, second] = self.parts();
        // The input of the derivation.
        let (mut extracted, _) = Hkdf::<Sha256>::extract(None, parent.expose());
        let expander = MacKey::new(&SymmetricKey::take(&mut extracted.0));
        let mut expanded = expander.mac([Self::PREFIX, first.as_bytes(), second.as_bytes(), &[1]]);
        SymmetricKey::take(&mut expanded)
    }

    /// Derives the sealing key for this purpose; its blobs name the parent.
    pub(crate) fn sealing_key(self, parent: &SymmetricKey, id: KeyId) -> AeadKey {
        AeadKey::new(id, &self.derive(parent))
    }

    /// Derives the HMAC key for this purpose.
    pub(crate) fn mac_key(self, parent: &SymmetricKey) -> MacKey {
        MacKey::new(&self.derive(parent))
    }
}

#[cfg(test)]
mod tests;
