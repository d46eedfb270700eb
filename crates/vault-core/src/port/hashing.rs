//! Ports for passwords, passcodes and keyed digests.

use super::{HashError, SealError};
use crate::digest::{Digest, DigestPurpose, LookupDigests, RowMac};
use crate::email::EmailAddress;
use crate::entity::DocumentSecret;
use crate::hash_slots::Requester;
use crate::id::{AccountId, KeyId};
use crate::passcode::{Digits, PasscodeSecret, RecoveryCode, TimeStep};
use crate::time::Timestamp;
use async_trait::async_trait;
use secrecy::SecretString;
use std::any::Any;

/// Permit to run one password hash. Dropping it frees the slot in the hash queue.
pub struct HashPermit(pub Box<dyn Any + Send>);

/// Result of a password verification.
#[derive(Debug)]
pub enum PasswordVerdict {
    /// The password is correct. `rehashed` is its verifier with the current parameters if the stored one has older
    /// ones.
    Right {
        /// New verifier to store, if any.
        rehashed: Option<DocumentSecret>,
    },
    /// The password is wrong, or none is stored.
    Wrong,
    /// The stored verifier is malformed or has parameters out of bounds. The same work was done.
    Damaged,
}

/// Port that hashes passwords with a memory-hard function. Concurrency is limited by the memory that is set aside.
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    /// Acquires a slot in the hash queue. The slots are few and assigned by [`HashSlots`](crate::hash_slots::HashSlots).
    ///
    /// # Errors
    /// Returns [`HashError::Busy`] immediately if no slot is free for this requester.
    fn permit(&self, requester: Requester) -> Result<HashPermit, HashError>;

    /// Verifies `password`. If `stored` is `None`, verifies a decoy: the same work, and always wrong.
    async fn verify(
        &self,
        permit: HashPermit,
        password: SecretString,
        stored: Option<DocumentSecret>,
    ) -> Result<PasswordVerdict, HashError>;

    /// Returns the verifier of a new password.
    async fn hash(&self, permit: HashPermit, password: SecretString) -> Result<DocumentSecret, HashError>;
}

/// A new TOTP secret for the document of an account, and in plain text for its user.
pub struct NewSeed {
    /// The TOTP secret with the key of the account's recovery codes, for the document.
    pub seed: DocumentSecret,
    /// Plain secret, shown to its user once.
    pub secret: PasscodeSecret,
}

/// New recovery codes: digests for the store, plain codes for their user.
pub struct NewRecoveryCodes {
    /// Digests for the store.
    pub digests: Vec<Digest>,
    /// Plain codes, shown to their user once.
    pub codes: Vec<RecoveryCode>,
}

/// Port that generates and verifies passcodes.
pub trait PasscodeVerifier: Send + Sync {
    /// Generates a TOTP secret of 160 random bits, together with the key of the account's recovery codes.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn new_seed(&self, email: &EmailAddress) -> Result<NewSeed, SealError>;

    /// Generates a TOTP secret that replaces `before`. The account's recovery codes stay valid.
    ///
    /// # Errors
    /// The TOTP secret is malformed, or the operating system returns no randomness.
    fn next_seed(&self, email: &EmailAddress, before: &DocumentSecret) -> Result<NewSeed, SealError>;

    /// Returns the same TOTP secret with a new key of recovery codes. All recovery codes of `before` are invalid with it.
    ///
    /// # Errors
    /// Those of [`PasscodeVerifier::next_seed`].
    fn with_new_recovery_key(&self, before: &DocumentSecret) -> Result<DocumentSecret, SealError>;

    /// Generates ten recovery codes of 20 random digits, which are valid with this TOTP secret and its replacements.
    ///
    /// # Errors
    /// Those of [`PasscodeVerifier::next_seed`].
    fn new_recovery_codes(&self, account: AccountId, seed: &DocumentSecret) -> Result<NewRecoveryCodes, SealError>;

    /// Returns the digest under which a recovery code with these digits is stored. Without a TOTP secret, does the same
    /// work for a digest that is not stored.
    ///
    /// # Errors
    /// The TOTP secret is malformed.
    fn recovery_code(
        &self,
        account: AccountId,
        seed: Option<&DocumentSecret>,
        digits: &Digits,
    ) -> Result<Digest, SealError>;

    /// Returns the time step whose code is `digits`: the current step at `now` or the previous one. The duration does
    /// not depend on which matches. Without a TOTP secret, does the same work and returns `None`.
    ///
    /// # Errors
    /// The TOTP secret is malformed.
    fn matching_step(
        &self,
        seed: Option<&DocumentSecret>,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError>;
}

/// Port for keyed digests, with one key per purpose, and for MACs, whose keys are derived from the replaceable instance
/// key.
#[async_trait]
pub trait KeyedDigester: Send + Sync {
    /// Returns the digest of `parts`, each prefixed with its length, under the key for new digests.
    fn digest(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> Digest;

    /// Returns the digests of `parts` under each available key, for lookups. The first is the one of
    /// [`digest`](Self::digest).
    fn lookup(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> LookupDigests;

    /// Returns whether `digest` is the digest of `parts` under one of the available keys.
    fn fits(&self, purpose: DigestPurpose, parts: &[&[u8]], digest: &Digest) -> bool;

    /// Returns the active instance key, as far as it is loaded.
    fn active_key(&self) -> KeyId;

    /// Returns the MAC of `parts` under the active instance key, as far as it is loaded.
    fn sign(&self, purpose: DigestPurpose, parts: &[&[u8]]) -> RowMac;

    /// Returns whether `code` is the MAC of `parts` under the key that it names. Returns `false` if that key is not
    /// loaded, so call [`KeyedDigester::load_keys`] first.
    fn is_signed(&self, purpose: DigestPurpose, parts: &[&[u8]], code: &RowMac) -> bool;

    /// Loads the instance keys `keys` that the instance has: reads them from the store if one of them is not loaded.
    ///
    /// # Errors
    /// The store failed, or the root key cannot be used.
    async fn load_keys(&self, keys: &[KeyId]) -> Result<(), SealError>;

    /// Reads the keys from the store, unless they were read within the last second. A value that matches none of the
    /// loaded keys may use a new one.
    ///
    /// # Errors
    /// The store failed, or the root key cannot be used.
    async fn refresh(&self) -> Result<(), SealError>;

    /// Reads the instance keys from the store, after the store refused a value that was sealed with a key that is no
    /// longer active.
    ///
    /// # Errors
    /// The store failed, or the root key cannot be used.
    async fn reload_keys(&self) -> Result<(), SealError>;
}
