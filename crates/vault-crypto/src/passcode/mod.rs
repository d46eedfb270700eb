//! Passcodes: TOTP codes (RFC 6238: SHA-1, six digits, 30 seconds) and recovery codes.

mod address;
mod recovery;

use crate::context::Context;
use crate::entropy::random_uuid;
use crate::error::{damaged, does_not_open, no_entropy, not_sealed};
use crate::instance_keys::InstanceKeyring;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use data_encoding::BASE32_NOPAD;
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use totp_rs::{Algorithm, Builder, Secret, Totp};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, SeedId};
use vault_core::passcode::{Digits, Passcode, PasscodeSecret, TimeStep};
use vault_core::port::{Entropy, NewRecoveryCodes, NewSeed, PasscodeVerifier, SealError};
use vault_core::sealed::SealedSeed;
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Length of a TOTP secret in bytes: 160 bits, as RFC 4226 section 4 recommends.
const SEED: usize = 20;
/// Length of the recovery code key in bytes.
const KEY: usize = 32;
/// Length of a time step in seconds.
const STEP: u64 = 30;
const DIGITS: usize = Passcode::TIME_BASED_DIGITS;

/// Generates and verifies passcodes.
pub struct TotpVerifier {
    keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
}

/// Content of a sealed TOTP secret: the secret itself, then the key of the account's recovery codes.
///
/// The key is stored per account, so it is resealed together with the TOTP secret when the instance key is replaced. An
/// instance-wide key could not be replaced: only the digests of recovery codes are stored, and a digest cannot be
/// recomputed under another key.
type Secrets = Zeroizing<[u8; SEED + KEY]>;

impl TotpVerifier {
    pub(crate) fn new(keys: Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        Self { keys, entropy }
    }

    fn open(&self, account: AccountId, seed: &SealedSeed) -> Result<Secrets, SealError> {
        let context = Context::seed(self.keys.instance(), account, seed.id);
        let key = self.keys.sealed(&context, &seed.blob)?;
        let opened = key.seed.open(&context, &seed.blob).map_err(|error| does_not_open(&context, error))?;
        let bytes = opened.as_slice().try_into().map_err(|_| damaged(&context, "not a seed"))?;
        Ok(Zeroizing::new(bytes))
    }

    fn open_totp(&self, account: AccountId, seed: &SealedSeed) -> Result<Totp, SealError> {
        let secrets = self.open(account, seed)?;
        let not_a_seed = || damaged(&Context::seed(self.keys.instance(), account, seed.id), "not a seed");
        secrets.first_chunk().and_then(totp).ok_or_else(not_a_seed)
    }

    /// Returns the key of the account's recovery codes.
    fn open_recovery(&self, account: AccountId, seed: &SealedSeed) -> Result<MacKey, SealError> {
        let secrets = self.open(account, seed)?;
        let mut key: Zeroizing<[u8; KEY]> = Zeroizing::new([0; KEY]);
        secrets.iter().skip(SEED).zip(key.iter_mut()).for_each(|(from, to)| *to = *from);
        Ok(MacKey::new(&SymmetricKey::take(&mut key)))
    }

    fn seal(&self, account: AccountId, email: &EmailAddress, secrets: &Secrets) -> Result<NewSeed, SealError> {
        let sealed = self.seal_secrets(account, secrets)?;
        // Allocates the final size: a buffer that grows would leave copies of the secret in memory.
        let text = Zeroizing::new(BASE32_NOPAD.encode(secrets.get(..SEED).unwrap_or_default()));
        let uri = address::otpauth(email, &text);
        // Both are shown to the user once.
        let secret = PasscodeSecret { secret: secret_text(text), uri: secret_text(uri) };
        Ok(NewSeed { sealed, secret })
    }

    fn seal_secrets(&self, account: AccountId, secrets: &Secrets) -> Result<SealedSeed, SealError> {
        let id = SeedId::from_uuid(random_uuid(&*self.entropy).map_err(no_entropy)?);
        let context = Context::seed(self.keys.instance(), account, id);
        let blob = self.keys.active().seed.seal(&*self.entropy, &context, secrets.as_slice()).map_err(not_sealed)?;
        Ok(SealedSeed { id, blob })
    }
}

/// Returns the passcode of `step` for a new TOTP secret, as the user's authenticator app computes it, or `None` if the
/// secret is not Base32 or too short.
pub fn passcode_of(passcode: &PasscodeSecret, step: TimeStep) -> Option<SecretString> {
    let secret = Secret::try_from_base32(passcode.secret.expose_secret()).ok()?; // as an authenticator reads it
    let seed: Zeroizing<[u8; SEED]> = Zeroizing::new(secret.as_bytes().try_into().ok()?);
    Some(secret_text(code(&totp(&seed)?, step.0)))
}

/// Returns the digest of a recovery code.
fn digest(key: &MacKey, account: AccountId, digits: &str) -> Digest {
    Digest::from_bytes(key.code_of_parts(&[account.as_bytes(), digits.as_bytes()]))
}

fn totp(seed: &[u8; SEED]) -> Option<Totp> {
    Builder::new()
        .with_algorithm(Algorithm::SHA1)
        .with_digits(DIGITS as u8)
        .with_step_duration(STEP)
        .with_skew(0)
        .with_secret(Secret::new_stack(*seed))
        .build()
        .ok()
}

/// Returns the TOTP code of a time step. For a step before 1970 the result matches no digits.
fn code(totp: &Totp, step: i64) -> Zeroizing<String> {
    match u64::try_from(step).ok().and_then(|step| step.checked_mul(STEP)) {
        Some(seconds) => Zeroizing::new(totp.generate(seconds).to_string()),
        None => Zeroizing::new("-".repeat(DIGITS)),
    }
}

fn step_at(now: Timestamp) -> i64 {
    now.as_seconds().div_euclid(STEP as i64)
}

impl PasscodeVerifier for TotpVerifier {
    fn new_seed(&self, account: AccountId, email: &EmailAddress) -> Result<NewSeed, SealError> {
        let mut secrets = Secrets::new([0; SEED + KEY]);
        self.entropy.fill(secrets.as_mut_slice()).map_err(no_entropy)?;
        self.seal(account, email, &secrets)
    }

    fn next_seed(&self, account: AccountId, email: &EmailAddress, before: &SealedSeed) -> Result<NewSeed, SealError> {
        let mut secrets = self.open(account, before)?;
        self.entropy.fill(secrets.get_mut(..SEED).unwrap_or_default()).map_err(no_entropy)?;
        self.seal(account, email, &secrets)
    }

    fn with_new_recovery_key(&self, account: AccountId, before: &SealedSeed) -> Result<SealedSeed, SealError> {
        let mut secrets = self.open(account, before)?;
        self.entropy.fill(secrets.get_mut(SEED..).unwrap_or_default()).map_err(no_entropy)?;
        self.seal_secrets(account, &secrets)
    }

    fn new_recovery_codes(&self, account: AccountId, seed: &SealedSeed) -> Result<NewRecoveryCodes, SealError> {
        let key = self.open_recovery(account, seed)?;
        let mut made = NewRecoveryCodes { digests: Vec::new(), codes: Vec::new() };
        for _ in 0..recovery::COUNT {
            let digits = recovery::random_digits(&*self.entropy).map_err(no_entropy)?;
            made.digests.push(digest(&key, account, &digits));
            made.codes.push(recovery::in_groups(&digits));
        }
        Ok(made)
    }

    fn recovery_code(&self, account: AccountId, seed: &SealedSeed, digits: &Digits) -> Result<Digest, SealError> {
        Ok(digest(&self.open_recovery(account, seed)?, account, digits.expose())) // Only digested.
    }

    fn matching_step(
        &self,
        account: AccountId,
        seed: &SealedSeed,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError> {
        let totp = self.open_totp(account, seed)?;
        let current = step_at(now);
        // Both codes are computed and compared in full, so the time does not reveal which one matches.
        let mut found = Choice::from(0);
        let mut matching = current;
        for step in [current.saturating_sub(1), current] {
            let matches = code(&totp, step).as_bytes().ct_eq(digits.expose().as_bytes()); // the code to compare
            matching = i64::conditional_select(&matching, &step, matches);
            found |= matches;
        }
        Ok(bool::from(found).then_some(TimeStep(matching)))
    }

    fn code_at(&self, account: AccountId, seed: &SealedSeed, step: TimeStep) -> Result<SecretString, SealError> {
        Ok(secret_text(code(&self.open_totp(account, seed)?, step.0)))
    }
}

/// Copies the text: the original buffer, with its spare capacity, is wiped here.
fn secret_text(text: Zeroizing<String>) -> SecretString {
    SecretString::from(text.as_str())
}

#[cfg(test)]
mod tests;
