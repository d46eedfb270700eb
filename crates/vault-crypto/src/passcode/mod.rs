//! Passcodes: time-based codes (RFC 6238: SHA-1, six digits, 30 seconds) and recovery codes.

mod address;
mod base32;
mod recovery;

use crate::context::Context;
use crate::entropy::random_uuid;
use crate::error::{damaged, does_not_open, no_entropy, not_sealed};
use crate::instance_keys::InstanceKeyring;
use secrecy::SecretString;
use std::sync::Arc;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use totp_rs::{Algorithm, Builder, Secret, Totp};
use vault_core::digest::DigestPurpose;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, SeedId};
use vault_core::passcode::{Digits, Passcode, PasscodeSecret, TimeStep};
use vault_core::port::{Entropy, KeyedDigester, NewRecoveryCodes, NewSeed, PasscodeVerifier, SealError};
use vault_core::sealed::SealedSeed;
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Bytes of a seed: 160 bits, as RFC 4226 section 4 recommends.
const SEED: usize = 20;
/// Seconds of a step.
const STEP: u64 = 30;
const DIGITS: usize = Passcode::TIME_BASED_DIGITS;

/// Generates and verifies passcodes.
pub struct TotpVerifier {
    keys: Arc<InstanceKeyring>,
    digester: Arc<dyn KeyedDigester>,
    entropy: Arc<dyn Entropy>,
}

impl TotpVerifier {
    pub(crate) fn new(keys: Arc<InstanceKeyring>, digester: Arc<dyn KeyedDigester>, entropy: Arc<dyn Entropy>) -> Self {
        Self { keys, digester, entropy }
    }

    fn open(&self, account: AccountId, seed: &SealedSeed) -> Result<Totp, SealError> {
        let context = Context::seed(self.keys.instance(), account, seed.id);
        let key = self.keys.sealed(&context, &seed.blob)?;
        let opened = key.seed.open(&context, &seed.blob).map_err(|error| does_not_open(&context, error))?;
        let bytes = opened.as_slice().try_into().map_err(|_| damaged(&context, "not a seed"))?;
        totp(bytes).ok_or_else(|| damaged(&context, "not a seed"))
    }
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

/// The code of a step. For a step before 1970 it matches no digits.
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
        let id = SeedId::from_uuid(random_uuid(&*self.entropy).map_err(no_entropy)?);
        let mut seed = Zeroizing::new([0; SEED]);
        self.entropy.fill(seed.as_mut_slice()).map_err(no_entropy)?;
        let context = Context::seed(self.keys.instance(), account, id);
        let blob = self.keys.active().seed.seal(&*self.entropy, &context, seed.as_slice()).map_err(not_sealed)?;
        let text = base32::encode(seed.as_slice());
        let uri = address::otpauth(email, &text);
        // Both are shown to the account holder once.
        let secret = PasscodeSecret { secret: secret_text(text), uri: secret_text(uri) };
        Ok(NewSeed { sealed: SealedSeed { id, blob }, secret })
    }

    fn new_recovery_codes(&self, account: AccountId) -> Result<NewRecoveryCodes, SealError> {
        let mut made = NewRecoveryCodes { digests: Vec::new(), codes: Vec::new() };
        for _ in 0..recovery::COUNT {
            let digits = recovery::random_digits(&*self.entropy).map_err(no_entropy)?;
            let parts: [&[u8]; 2] = [account.as_bytes(), digits.as_bytes()];
            made.digests.push(self.digester.digest(DigestPurpose::RecoveryCode, &parts));
            made.codes.push(recovery::in_groups(&digits));
        }
        Ok(made)
    }

    fn matching_step(
        &self,
        account: AccountId,
        seed: &SealedSeed,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError> {
        let totp = self.open(account, seed)?;
        let current = step_at(now);
        // Both codes are computed and compared in full, whichever matches.
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
        Ok(secret_text(code(&self.open(account, seed)?, step.0)))
    }
}

/// Copied, because the buffer with its spare capacity is wiped here.
fn secret_text(text: Zeroizing<String>) -> SecretString {
    SecretString::from(text.as_str())
}

#[cfg(test)]
mod tests;
