//! The crypto operations of the use cases, in order.

use async_trait::async_trait;
use secrecy::SecretString;
use std::sync::{Arc, Mutex};
use vault_core::audit::{AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint};
use vault_core::digest::{Digest, DigestPurpose, LookupDigests, RowMac};
use vault_core::email::EmailAddress;
use vault_core::entity::DocumentSecret;
use vault_core::hash_slots::Requester;
use vault_core::id::{AccountId, KeyId};
use vault_core::passcode::{Digits, TimeStep};
use vault_core::port::{
    AuditSealer, HashError, HashPermit, KeyedDigester, NewRecoveryCodes, NewSeed, PasscodeVerifier, PasswordHasher,
    PasswordVerdict, SealError,
};
use vault_core::time::Timestamp;

/// The operations so far.
#[derive(Default)]
pub(crate) struct Work(Mutex<Vec<String>>);

impl Work {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Returns the operations since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// An adapter that records its operations.
pub(crate) struct Noted<A> {
    pub(crate) adapter: A,
    pub(crate) work: Arc<Work>,
}

impl<A> Noted<A> {
    pub(crate) fn new(adapter: A, work: &Arc<Work>) -> Arc<Self> {
        Arc::new(Self { adapter, work: Arc::clone(work) })
    }
}

impl<A: AuditSealer> AuditSealer for Noted<A> {
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord {
        self.work.note(format!("seal the record {}", record.action.as_str()));
        self.adapter.seal(record)
    }

    fn mac(&self, bytes: &[u8], now: Timestamp) -> (KeyId, Digest) {
        self.adapter.mac(bytes, now)
    }

    fn is_mac(&self, key: KeyId, bytes: &[u8], mac: Digest) -> bool {
        self.adapter.is_mac(key, bytes, mac)
    }

    fn hash_checkpoint(&self, content: &[u8]) -> Digest {
        self.adapter.hash_checkpoint(content)
    }

    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint {
        self.adapter.seal_checkpoint(checkpoint)
    }

    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool {
        self.adapter.is_genuine_checkpoint(sealed)
    }
}

#[async_trait]
impl<A: KeyedDigester> KeyedDigester for Noted<Arc<A>> {
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest {
        self.work.note(format!("digest {purpose:?}"));
        self.adapter.digest(purpose, parts)
    }

    fn lookup(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> LookupDigests {
        self.work.note(format!("digest {purpose:?}"));
        self.adapter.lookup(purpose, parts)
    }

    fn fits(&self, purpose: DigestPurpose, parts: &[&[u8]], digest: &Digest) -> bool {
        self.work.note(format!("digest {purpose:?}"));
        self.adapter.fits(purpose, parts, digest)
    }

    async fn refresh(&self) -> Result<(), SealError> {
        self.adapter.refresh().await
    }

    fn active_key(&self) -> KeyId {
        self.adapter.active_key()
    }

    fn sign(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> RowMac {
        self.work.note(format!("digest {purpose:?}"));
        self.adapter.sign(purpose, parts)
    }

    fn is_signed(&self, purpose: DigestPurpose, parts: &[&[u8]], mac: &RowMac) -> bool {
        self.work.note(format!("digest {purpose:?}"));
        self.adapter.is_signed(purpose, parts, mac)
    }

    async fn load_keys(&self, keys: &[KeyId]) -> Result<(), SealError> {
        self.adapter.load_keys(keys).await
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        self.adapter.reload_keys().await
    }
}

#[async_trait]
impl<A: PasswordHasher> PasswordHasher for Noted<Arc<A>> {
    fn permit(&self, requester: Requester) -> Result<HashPermit, HashError> {
        self.work.note("permit a hash");
        self.adapter.permit(requester)
    }

    async fn verify(
        &self,
        permit: HashPermit,
        password: SecretString,
        stored: Option<DocumentSecret>,
    ) -> Result<PasswordVerdict, HashError> {
        self.work.note("verify a password");
        self.adapter.verify(permit, password, stored).await
    }

    async fn hash(&self, permit: HashPermit, password: SecretString) -> Result<DocumentSecret, HashError> {
        self.work.note("hash a password");
        self.adapter.hash(permit, password).await
    }
}

impl<A: PasscodeVerifier> PasscodeVerifier for Noted<Arc<A>> {
    fn new_seed(&self, email: &EmailAddress) -> Result<NewSeed, SealError> {
        self.work.note("make a seed");
        self.adapter.new_seed(email)
    }

    fn next_seed(&self, email: &EmailAddress, before: &DocumentSecret) -> Result<NewSeed, SealError> {
        self.work.note("make a seed");
        self.adapter.next_seed(email, before)
    }

    fn with_new_recovery_key(&self, before: &DocumentSecret) -> Result<DocumentSecret, SealError> {
        self.work.note("make a seed");
        self.adapter.with_new_recovery_key(before)
    }

    fn new_recovery_codes(&self, account: AccountId, seed: &DocumentSecret) -> Result<NewRecoveryCodes, SealError> {
        self.work.note("make recovery codes");
        self.adapter.new_recovery_codes(account, seed)
    }

    fn recovery_code(
        &self,
        account: AccountId,
        seed: Option<&DocumentSecret>,
        digits: &Digits,
    ) -> Result<Digest, SealError> {
        self.work.note("digest a recovery code");
        self.adapter.recovery_code(account, seed, digits)
    }

    fn matching_step(
        &self,
        seed: Option<&DocumentSecret>,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError> {
        self.work.note("compare codes");
        self.adapter.matching_step(seed, digits, now)
    }
}
