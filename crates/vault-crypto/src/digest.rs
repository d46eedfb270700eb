//! Keyed digests: HMAC-SHA-256, one key per purpose, each derived once.

use crate::derive::Label;
use crate::instance_keys::InstanceKeyring;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::digest::{Digest, DigestPurpose, RowMac};
use vault_core::id::KeyId;
use vault_core::port::{KeyedDigester, SealError};

/// Computes keyed digests.
///
/// Digests that rows are found by use the random look-up key, which stays when a key above it is rotated. Codes, which can
/// be computed again (of rows that grant, of cursors), use keys derived from the instance key, and name it.
pub struct HmacDigester {
    keys: Arc<InstanceKeyring>,
}

/// What a look-up key is used for.
pub(crate) struct LookUpKeys {
    address: MacKey,
    attempt_bucket: MacKey,
    network: MacKey,
    enrolment_code: MacKey,
    recovery_code: MacKey,
    integration_token: MacKey,
    idempotent_body: MacKey,
    /// Parent of the keys of purposes that this crate does not know by name.
    look_up: SymmetricKey,
}

impl LookUpKeys {
    /// Derives them.
    pub(crate) fn derive(look_up: &SymmetricKey) -> Self {
        let looked_up = |purpose| Label::Digest(purpose).mac_key(look_up);
        Self {
            address: looked_up(DigestPurpose::Address),
            attempt_bucket: looked_up(DigestPurpose::AttemptBucket),
            network: looked_up(DigestPurpose::Network),
            enrolment_code: looked_up(DigestPurpose::EnrolmentCode),
            recovery_code: looked_up(DigestPurpose::RecoveryCode),
            integration_token: looked_up(DigestPurpose::IntegrationToken),
            idempotent_body: looked_up(DigestPurpose::IdempotentBody),
            look_up: Label::OtherDigests.derive(look_up),
        }
    }

    /// A digest of what is looked up.
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        let key = match purpose {
            DigestPurpose::Address => &self.address,
            DigestPurpose::AttemptBucket => &self.attempt_bucket,
            DigestPurpose::Network => &self.network,
            DigestPurpose::EnrolmentCode => &self.enrolment_code,
            DigestPurpose::RecoveryCode => &self.recovery_code,
            DigestPurpose::IntegrationToken => &self.integration_token,
            DigestPurpose::IdempotentBody => &self.idempotent_body,
            other => return Digest::from_bytes(Label::Digest(other).mac_key(&self.look_up).code_of_parts(parts)),
        };
        Digest::from_bytes(key.code_of_parts(parts))
    }
}

impl HmacDigester {
    pub(crate) const fn new(keys: Arc<InstanceKeyring>) -> Self {
        Self { keys }
    }

    fn looked_up(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        self.keys.purposes().look_up.active().key.digest(purpose, parts)
    }
}

#[async_trait]
impl KeyedDigester for HmacDigester {
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        match self.keys.active().code(purpose) {
            Some(key) => Digest::from_bytes(key.code_of_parts(parts)),
            None => self.looked_up(purpose, parts),
        }
    }

    fn active_key(&self) -> KeyId {
        self.keys.active().id()
    }

    fn sign(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> RowMac {
        let active = self.keys.active();
        let code = match active.code(purpose) {
            Some(key) => Digest::from_bytes(key.code_of_parts(parts)),
            None => self.looked_up(purpose, parts),
        };
        RowMac { key: active.id(), code }
    }

    fn is_signed(&self, purpose: DigestPurpose, parts: &[&[u8]], code: &RowMac) -> bool {
        let Some(keys) = self.keys.find(code.key) else { return false };
        keys.code(purpose).is_some_and(|key| Digest::from_bytes(key.code_of_parts(parts)) == code.code)
    }

    async fn know(&self, keys: &[KeyId]) -> Result<(), SealError> {
        self.keys.know(keys).await
    }

    async fn renew(&self) -> Result<(), SealError> {
        self.keys.renew().await
    }
}

#[cfg(test)]
mod tests;
