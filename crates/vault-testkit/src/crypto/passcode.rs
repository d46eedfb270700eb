//! Passcodes that are derived from the ID of the TOTP secret.

use super::digest::digest;
use data_encoding::BASE32_NOPAD;
use secrecy::SecretString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, SeedId};
use vault_core::passcode::{Digits, Passcode, PasscodeSecret, RecoveryCode, TimeStep};
use vault_core::port::{IdGenerator, NewRecoveryCodes, NewSeed, PasscodeVerifier, SealError};
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;

/// Number of recovery codes of an account.
const RECOVERY_CODES: u64 = 10;

/// Codes that can be computed from the secret's ID. Each secret and each step has its own.
pub struct FakePasscodes {
    ids: Arc<dyn IdGenerator>,
    created: AtomicU64,
}

impl FakePasscodes {
    /// Creates secrets with IDs from `ids`.
    pub fn new(ids: Arc<dyn IdGenerator>) -> Self {
        Self { ids, created: AtomicU64::new(0) }
    }

    /// Returns the code that an authenticator with `secret` shows in `step`, or `None` if the secret is unknown.
    pub fn shown_by_authenticator(secret: &str, step: TimeStep) -> Option<String> {
        let seed = BASE32_NOPAD.decode(secret.as_bytes()).ok()?;
        Some(code(SeedId::from_bytes(seed.try_into().ok()?), step))
    }
}

impl PasscodeVerifier for FakePasscodes {
    fn new_seed(&self, account: AccountId, email: &EmailAddress) -> Result<NewSeed, SealError> {
        let id = SeedId::from_uuid(self.ids.random());
        let secret = BASE32_NOPAD.encode(id.as_bytes());
        let uri = format!("otpauth://totp/OrgVault:{email}?secret={secret}&issuer=OrgVault");
        Ok(NewSeed {
            sealed: SealedSeed { id, blob: blob(account, id) },
            secret: PasscodeSecret { secret: secret.into(), uri: uri.into() },
        })
    }

    fn next_seed(&self, account: AccountId, email: &EmailAddress, before: &SealedSeed) -> Result<NewSeed, SealError> {
        check(account, before)?;
        self.new_seed(account, email)
    }

    fn with_new_recovery_key(&self, account: AccountId, before: &SealedSeed) -> Result<SealedSeed, SealError> {
        // The ID contains the secret here, and no key is part of the digests.
        check(account, before)?;
        Ok(before.clone())
    }

    fn new_recovery_codes(&self, account: AccountId, seed: &SealedSeed) -> Result<NewRecoveryCodes, SealError> {
        check(account, seed)?;
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

    fn recovery_code(&self, account: AccountId, seed: &SealedSeed, digits: &Digits) -> Result<Digest, SealError> {
        check(account, seed)?;
        Ok(digest(0, "recovery code", &[account.as_bytes(), digits.expose().as_bytes()]))
    }

    fn matching_step(
        &self,
        account: AccountId,
        seed: &SealedSeed,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError> {
        check(account, seed)?;
        let step = TimeStep::at(now);
        // Compared in plaintext: this is the fake.
        Ok([step, step.previous()].into_iter().find(|step| code(seed.id, *step) == digits.expose()))
    }

    fn code_at(&self, account: AccountId, seed: &SealedSeed, step: TimeStep) -> Result<SecretString, SealError> {
        check(account, seed)?;
        Ok(code(seed.id, step).into())
    }
}

fn blob(account: AccountId, id: SeedId) -> Blob {
    Blob::from_bytes(format!("not-sealed:{account}:{id}").into_bytes())
}

fn check(account: AccountId, seed: &SealedSeed) -> Result<(), SealError> {
    if seed.blob == blob(account, seed.id) {
        return Ok(());
    }
    let (table, column) = ("accounts", "seed");
    Err(SealError::Integrity { table, column, object: account.to_string(), reason: "sealed for another row" })
}

fn code(seed: SeedId, step: TimeStep) -> String {
    decimal(&[seed.as_bytes(), &step.0.to_be_bytes()], Passcode::TIME_BASED_DIGITS)
}

/// Returns decimal digits, at most 32, that are derived from `parts`.
fn decimal(parts: &[&[u8]], length: usize) -> String {
    let digest = digest(0, "passcode", parts);
    digest.as_bytes().iter().take(length).map(|byte| char::from(b'0' + byte % 10)).collect()
}
