//! Passcodes that are derived from the text of the TOTP secret.

use super::digest::digest;
use data_encoding::BASE32_NOPAD;
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::entity::DocumentSecret;
use vault_core::id::AccountId;
use vault_core::passcode::{Digits, Passcode, PasscodeSecret, RecoveryCode, TimeStep};
use vault_core::port::{IdGenerator, NewRecoveryCodes, NewSeed, PasscodeVerifier, SealError};
use vault_core::time::Timestamp;

/// Number of recovery codes of an account.
const RECOVERY_CODES: u64 = 10;

/// Codes that can be computed from the secret. Each secret and each step has its own.
pub struct FakePasscodes {
    ids: Arc<dyn IdGenerator>,
    created: AtomicU64,
}

impl FakePasscodes {
    /// Creates secrets from IDs of `ids`.
    pub fn new(ids: Arc<dyn IdGenerator>) -> Self {
        Self { ids, created: AtomicU64::new(0) }
    }

    /// Returns the code that an authenticator with `secret` shows in `step`, or `None` if the secret is unknown.
    pub fn shown_by_authenticator(secret: &str, step: TimeStep) -> Option<String> {
        BASE32_NOPAD.decode(secret.as_bytes()).ok()?;
        Some(code(secret, step))
    }
}

impl PasscodeVerifier for FakePasscodes {
    fn new_seed(&self, email: &EmailAddress) -> Result<NewSeed, SealError> {
        let secret = BASE32_NOPAD.encode(self.ids.random().as_bytes());
        let uri = format!("otpauth://totp/OrgVault:{email}?secret={secret}&issuer=OrgVault");
        let seed = SecretString::from(secret.clone()).into();
        Ok(NewSeed { seed, secret: PasscodeSecret { secret: secret.into(), uri: uri.into() } })
    }

    fn next_seed(&self, email: &EmailAddress, _: &DocumentSecret) -> Result<NewSeed, SealError> {
        self.new_seed(email)
    }

    fn with_new_recovery_key(&self, before: &DocumentSecret) -> Result<DocumentSecret, SealError> {
        Ok(before.clone()) // no key is part of the digests
    }

    fn new_recovery_codes(&self, account: AccountId, _: &DocumentSecret) -> Result<NewRecoveryCodes, SealError> {
        let mut new = NewRecoveryCodes { digests: Vec::new(), codes: Vec::new() };
        for _ in 0..RECOVERY_CODES {
            let count = self.created.fetch_add(1, Ordering::SeqCst).to_be_bytes();
            let digits = decimal(&[account.as_bytes(), &count], Passcode::RECOVERY_DIGITS);
            new.digests.push(digest(0, "recovery code", &[account.as_bytes(), digits.as_bytes()]));
            let groups = [&digits[..5], &digits[5..10], &digits[10..15], &digits[15..]];
            new.codes.push(RecoveryCode(groups.join("-").into()));
        }
        Ok(new)
    }

    fn recovery_code(
        &self,
        account: AccountId,
        _: Option<&DocumentSecret>,
        digits: &Digits,
    ) -> Result<Digest, SealError> {
        Ok(digest(0, "recovery code", &[account.as_bytes(), digits.expose().as_bytes()]))
    }

    fn matching_step(
        &self,
        seed: Option<&DocumentSecret>,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError> {
        let Some(seed) = seed else { return Ok(None) };
        let step = TimeStep::at(now);
        let is_it = |step: &TimeStep| code(seed.text().expose_secret(), *step) == digits.expose();
        // Compared in plaintext: this is the fake.
        Ok([step, step.previous()].into_iter().find(is_it))
    }
}

fn code(secret: &str, step: TimeStep) -> String {
    decimal(&[secret.as_bytes(), &step.0.to_be_bytes()], Passcode::TIME_BASED_DIGITS)
}

/// Returns decimal digits, at most 32, that are derived from `parts`.
fn decimal(parts: &[&[u8]], length: usize) -> String {
    let digest = digest(0, "passcode", parts);
    digest.as_bytes().iter().take(length).map(|byte| char::from(b'0' + byte % 10)).collect()
}
