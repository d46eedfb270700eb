//! Codes over audit records: HMAC-SHA-256 over every field.

use crate::derive::Label;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use vault_core::audit::{AuditRecord, SealedAuditRecord};
use vault_core::digest::Digest;
use vault_core::id::KeyId;
use vault_core::port::AuditSealer;

/// Gives audit records their code under the newest audit key, and checks codes under any.
pub struct HmacAuditSealer {
    newest: (KeyId, MacKey),
    older: Vec<(KeyId, MacKey)>,
}

impl HmacAuditSealer {
    pub(crate) fn new<'a>(
        newest: (KeyId, &SymmetricKey),
        older: impl IntoIterator<Item = (KeyId, &'a SymmetricKey)>,
    ) -> Self {
        let ready = |(id, key): (KeyId, &SymmetricKey)| (id, Label::AuditRecord.mac_key(key));
        Self { newest: ready(newest), older: older.into_iter().map(ready).collect() }
    }

    /// Whether the record is unchanged. Compared in constant time.
    pub fn verify(&self, sealed: &SealedAuditRecord) -> bool {
        let mut keys = std::iter::once(&self.newest).chain(&self.older);
        keys.find(|(id, _)| *id == sealed.key).is_some_and(|(_, key)| code(key, &sealed.record) == sealed.code)
    }
}

impl AuditSealer for HmacAuditSealer {
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord {
        let (id, key) = &self.newest;
        SealedAuditRecord { code: code(key, &record), key: *id, record }
    }
}

fn code(key: &MacKey, record: &AuditRecord) -> Digest {
    Digest::from_bytes(key.code([record.to_authenticated_bytes().as_slice()]))
}

#[cfg(test)]
mod tests;
