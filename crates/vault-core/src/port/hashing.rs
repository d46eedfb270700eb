//! Passwords, passcodes and keyed digests.

use super::{HashError, SealError};
use crate::digest::{Digest, DigestPurpose, LookUpDigests, RowMac};
use crate::email::EmailAddress;
use crate::id::{AccountId, KeyId};
use crate::passcode::{Digits, PasscodeSecret, RecoveryCode, TimeStep};
use crate::sealed::{SealedPassword, SealedSeed};
use crate::seats::Requester;
use crate::time::Timestamp;
use async_trait::async_trait;
use secrecy::SecretString;
use std::any::Any;

/// The right to run one password hash. Dropping it frees the seat.
pub struct HashPermit(pub Box<dyn Any + Send>);

/// What verifying a password found.
#[derive(Debug)]
pub enum PasswordVerdict {
    /// The right password. `rehashed` is its verifier at today's parameters, where the stored one lags behind.
    Right {
        /// The verifier to store instead, if any.
        rehashed: Option<SealedPassword>,
    },
    /// A wrong password, or none was stored.
    Wrong,
    /// The stored verifier does not open or is out of bounds. The same work was done.
    Damaged,
}

/// Hashes passwords with a memory-hard function, at most as many at once as there is memory set aside.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    /// A seat among those whose passwords are hashed or wait for it. There are few; [`Seats`](crate::seats::Seats) is
    /// the rule.
    ///
    /// # Errors
    /// [`HashError::Busy`] at once if no seat is left for this requester.
    fn permit(&self, requester: Requester) -> Result<HashPermit, HashError>;

    /// Verifies `password`. With `stored` absent a decoy is verified: the same work, always wrong.
    async fn verify(
        &self,
        permit: HashPermit,
        account: Option<AccountId>,
        password: SecretString,
        stored: Option<SealedPassword>,
    ) -> Result<PasswordVerdict, HashError>;

    /// The sealed verifier of a new password of `account`.
    async fn hash(
        &self,
        permit: HashPermit,
        account: AccountId,
        password: SecretString,
    ) -> Result<SealedPassword, HashError>;
}

/// A new passcode seed: sealed for the store, plain for its owner.
pub struct NewSeed {
    /// For the store.
    pub sealed: SealedSeed,
    /// For the owner, once.
    pub secret: PasscodeSecret,
}

/// New recovery codes: digests for the store, plain for their owner.
pub struct NewRecoveryCodes {
    /// For the store.
    pub digests: Vec<Digest>,
    /// For the owner, once.
    pub codes: Vec<RecoveryCode>,
}

/// Makes and verifies passcodes.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait PasscodeVerifier: Send + Sync {
    /// A new seed of 160 random bits, and with it the key of the account's recovery codes.
    ///
    /// # Errors
    /// No entropy.
    fn new_seed(&self, account: AccountId, email: &EmailAddress) -> Result<NewSeed, SealError>;

    /// A new seed in the place of `before`, with which the account's recovery codes go on working.
    ///
    /// # Errors
    /// The seed does not open; no entropy.
    fn next_seed(&self, account: AccountId, email: &EmailAddress, before: &SealedSeed) -> Result<NewSeed, SealError>;

    /// Ten new recovery codes of 20 random digits, which work with this seed and those that take its place.
    ///
    /// # Errors
    /// The seed does not open; no entropy.
    fn new_recovery_codes(&self, account: AccountId, seed: &SealedSeed) -> Result<NewRecoveryCodes, SealError>;

    /// The digest that a recovery code of these digits has in the store.
    ///
    /// # Errors
    /// The seed does not open.
    fn recovery_code(&self, account: AccountId, seed: &SealedSeed, digits: &Digits) -> Result<Digest, SealError>;

    /// The step whose code is `digits`: the current step at `now` or the previous one. Takes the same time whichever
    /// matches.
    ///
    /// # Errors
    /// The seed does not open.
    fn matching_step(
        &self,
        account: AccountId,
        seed: &SealedSeed,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError>;

    /// The code of `step`, for operators with access to the machine.
    ///
    /// # Errors
    /// The seed does not open.
    fn code_at(&self, account: AccountId, seed: &SealedSeed, step: TimeStep) -> Result<SecretString, SealError>;
}

/// Keyed digests, one key per purpose; and codes, whose keys follow from an instance key, which is replaced now and then.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait KeyedDigester: Send + Sync {
    /// The digest of `parts`, each with its length before it, under the key that makes new ones.
    #[allow(clippy::needless_lifetimes, reason = "the mock cannot name an elided lifetime inside a slice")]
    fn digest<'a>(&self, purpose: DigestPurpose, parts: &[&'a [u8]]) -> Digest;

    /// The digests of `parts` under each key that there is, the one of [`digest`](Self::digest) first. For what is found by them.
    #[allow(clippy::needless_lifetimes, reason = "the mock cannot name an elided lifetime inside a slice")]
    fn look_up<'a>(&self, purpose: DigestPurpose, parts: &[&'a [u8]]) -> LookUpDigests;

    /// Whether `digest` is the one of `parts` under one of the keys that there are.
    #[allow(clippy::needless_lifetimes, reason = "the mock cannot name an elided lifetime inside a slice")]
    fn fits<'a>(&self, purpose: DigestPurpose, parts: &[&'a [u8]], digest: &Digest) -> bool;

    /// The instance key that is active, as far as is known.
    fn active_key(&self) -> KeyId;

    /// The code over `parts` under the instance key that is active, as far as is known.
    #[allow(clippy::needless_lifetimes, reason = "the mock cannot name an elided lifetime inside a slice")]
    fn sign<'a>(&self, purpose: DigestPurpose, parts: &[&'a [u8]]) -> RowMac;

    /// Whether `code` is the one over `parts` under the key that it names; of a key that is not known it is not. So
    /// [`KeyedDigester::load_keys`] comes first.
    #[allow(clippy::needless_lifetimes, reason = "the mock cannot name an elided lifetime inside a slice")]
    fn is_signed<'a>(&self, purpose: DigestPurpose, parts: &[&'a [u8]], code: &RowMac) -> bool;

    /// Has the instance keys `keys` known, as far as the deployment has them: reads them from the store if one of them is
    /// not. Passwords and seeds that they seal open then, too.
    ///
    /// # Errors
    /// The store failed, or the root key cannot be used.
    async fn load_keys(&self, keys: &[KeyId]) -> Result<(), SealError>;

    /// Reads the keys from the store, unless they were read within the last second: what fits none of those that are known may be under one
    /// that is new.
    ///
    /// # Errors
    /// The store failed, or the root key cannot be used.
    async fn refresh(&self) -> Result<(), SealError>;

    /// Reads the instance keys from the store, after it refused what was sealed under one that is active no longer.
    ///
    /// # Errors
    /// The store failed, or the root key cannot be used.
    async fn reload_keys(&self) -> Result<(), SealError>;
}
