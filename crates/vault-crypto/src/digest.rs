//! Keyed digests: HMAC-SHA-256, one key per purpose, each derived once.

use crate::derive::Label;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::port::KeyedDigester;

/// Computes keyed digests.
///
/// Digests that rows are found by use the random look-up key, which stays when a key above it is rotated. Digests that can
/// be computed again (codes of rows that grant, cursors) use keys derived from the instance key.
pub struct HmacDigester {
    address: MacKey,
    attempt_bucket: MacKey,
    network: MacKey,
    enrolment_code: MacKey,
    recovery_code: MacKey,
    integration_token: MacKey,
    idempotent_body: MacKey,
    account_grant: MacKey,
    invitation_grant: MacKey,
    integration_grant: MacKey,
    cursor: MacKey,
    /// Parent of the keys of purposes that this crate does not know by name.
    look_up: SymmetricKey,
}

impl HmacDigester {
    pub(crate) fn new(instance: &SymmetricKey, look_up: &SymmetricKey) -> Self {
        let looked_up = |purpose| Label::Digest(purpose).mac_key(look_up);
        let made_again = |purpose| Label::Digest(purpose).mac_key(instance);
        Self {
            address: looked_up(DigestPurpose::Address),
            attempt_bucket: looked_up(DigestPurpose::AttemptBucket),
            network: looked_up(DigestPurpose::Network),
            enrolment_code: looked_up(DigestPurpose::EnrolmentCode),
            recovery_code: looked_up(DigestPurpose::RecoveryCode),
            integration_token: looked_up(DigestPurpose::IntegrationToken),
            idempotent_body: looked_up(DigestPurpose::IdempotentBody),
            account_grant: made_again(DigestPurpose::AccountGrant),
            invitation_grant: made_again(DigestPurpose::InvitationGrant),
            integration_grant: made_again(DigestPurpose::IntegrationGrant),
            cursor: made_again(DigestPurpose::Cursor),
            look_up: Label::OtherDigests.derive(look_up),
        }
    }
}

impl KeyedDigester for HmacDigester {
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        let key = match purpose {
            DigestPurpose::Address => &self.address,
            DigestPurpose::AttemptBucket => &self.attempt_bucket,
            DigestPurpose::Network => &self.network,
            DigestPurpose::EnrolmentCode => &self.enrolment_code,
            DigestPurpose::RecoveryCode => &self.recovery_code,
            DigestPurpose::IntegrationToken => &self.integration_token,
            DigestPurpose::IdempotentBody => &self.idempotent_body,
            DigestPurpose::AccountGrant => &self.account_grant,
            DigestPurpose::InvitationGrant => &self.invitation_grant,
            DigestPurpose::IntegrationGrant => &self.integration_grant,
            DigestPurpose::Cursor => &self.cursor,
            other => return Digest::from_bytes(Label::Digest(other).mac_key(&self.look_up).code_of_parts(parts)),
        };
        Digest::from_bytes(key.code_of_parts(parts))
    }
}

#[cfg(test)]
mod tests;
