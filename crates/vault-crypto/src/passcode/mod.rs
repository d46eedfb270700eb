//! Passcodes: TOTP codes (RFC 6238: SHA-1, six digits, 30 seconds) and recovery codes.

mod address;
mod recovery;

use crate::error::{fault, no_entropy};
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use data_encoding::BASE32_NOPAD;
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use totp_rs::{Algorithm, Builder, Secret, Totp};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::entity::DocumentSecret;
use vault_core::id::AccountId;
use vault_core::passcode::{Digits, Passcode, PasscodeSecret, TimeStep};
use vault_core::port::{Entropy, NewRecoveryCodes, NewSeed, PasscodeVerifier, SealError};
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
    entropy: Arc<dyn Entropy>,
}

/// A TOTP secret in the document of an account: the secret itself, then the key of the account's recovery codes.
///
/// The key is stored per account, so it is resealed together with the TOTP secret when the instance key is replaced. An
/// instance-wide key could not be replaced: only the digests of recovery codes are stored, and a digest cannot be
/// recomputed under another key.
type Secrets = Zeroizing<[u8; SEED + KEY]>;

impl TotpVerifier {
    pub(crate) fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self { entropy }
    }

    /// Fills a part of the secrets with random bytes.
    fn renew(&self, secrets: &mut [u8]) -> Result<(), SealError> {
        self.entropy.fill(secrets).map_err(no_entropy)
    }
}

/// Parses a TOTP secret with its key.
fn read(seed: &DocumentSecret) -> Result<Secrets, SealError> {
    let mut secrets = Secrets::new([0; SEED + KEY]);
    let text = seed.text().expose_secret(); // to compute codes
    match STANDARD_NO_PAD.decode_slice(text, secrets.as_mut_slice()) {
        Ok(length) if length == SEED + KEY => Ok(secrets),
        _ => Err(fault("the TOTP secret of an account is malformed")),
    }
}

fn write(secrets: &Secrets) -> DocumentSecret {
    secret_text(Zeroizing::new(STANDARD_NO_PAD.encode(secrets.as_slice()))).into()
}

/// Returns a TOTP secret, or that of a decoy.
fn read_or_decoy(seed: Option<&DocumentSecret>) -> Result<Secrets, SealError> {
    seed.map_or_else(|| Ok(Secrets::new([0; SEED + KEY])), read)
}

/// Returns the key of the account's recovery codes.
fn recovery_key(secrets: &Secrets) -> MacKey {
    let mut key: Zeroizing<[u8; KEY]> = Zeroizing::new([0; KEY]);
    secrets.iter().skip(SEED).zip(key.iter_mut()).for_each(|(from, to)| *to = *from);
    MacKey::new(&SymmetricKey::take(&mut key))
}

fn shown(email: &EmailAddress, secrets: &Secrets) -> NewSeed {
    // Allocates the final size: a buffer that grows would leave copies of the secret in memory.
    let text = Zeroizing::new(BASE32_NOPAD.encode(secrets.get(..SEED).unwrap_or_default()));
    let uri = address::otpauth(email, &text);
    // Both are shown to the user once.
    NewSeed { seed: write(secrets), secret: PasscodeSecret { secret: secret_text(text), uri: secret_text(uri) } }
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
    Digest::from_bytes(key.mac_of_parts(&[account.as_bytes(), digits.as_bytes()]))
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
    fn new_seed(&self, email: &EmailAddress) -> Result<NewSeed, SealError> {
        let mut secrets = Secrets::new([0; SEED + KEY]);
        self.renew(secrets.as_mut_slice())?;
        Ok(shown(email, &secrets))
    }

    fn next_seed(&self, email: &EmailAddress, before: &DocumentSecret) -> Result<NewSeed, SealError> {
        let mut secrets = read(before)?;
        self.renew(secrets.get_mut(..SEED).unwrap_or_default())?;
        Ok(shown(email, &secrets))
    }

    fn with_new_recovery_key(&self, before: &DocumentSecret) -> Result<DocumentSecret, SealError> {
        let mut secrets = read(before)?;
        self.renew(secrets.get_mut(SEED..).unwrap_or_default())?;
        Ok(write(&secrets))
    }

    fn new_recovery_codes(&self, account: AccountId, seed: &DocumentSecret) -> Result<NewRecoveryCodes, SealError> {
        let key = recovery_key(&read(seed)?);
        let mut made = NewRecoveryCodes { digests: Vec::new(), codes: Vec::new() };
        for _ in 0..recovery::COUNT {
            let digits = recovery::random_digits(&*self.entropy).map_err(no_entropy)?;
            made.digests.push(digest(&key, account, &digits));
            made.codes.push(recovery::in_groups(&digits));
        }
        Ok(made)
    }

    fn recovery_code(
        &self,
        account: AccountId,
        seed: Option<&DocumentSecret>,
        digits: &Digits,
    ) -> Result<Digest, SealError> {
        Ok(digest(&recovery_key(&read_or_decoy(seed)?), account, digits.expose())) // Only digested.
    }

    fn matching_step(
        &self,
        seed: Option<&DocumentSecret>,
        digits: &Digits,
        now: Timestamp,
    ) -> Result<Option<TimeStep>, SealError> {
        let totp = read_or_decoy(seed)?.first_chunk().and_then(totp).ok_or_else(|| fault("not a TOTP secret"))?;
        let current = step_at(now);
        // Both codes are computed and compared in full, so the time does not reveal which one matches.
        let mut found = Choice::from(0);
        let mut matching = current;
        for step in [current.saturating_sub(1), current] {
            let matches = code(&totp, step).as_bytes().ct_eq(digits.expose().as_bytes()); // the code to compare
            matching = i64::conditional_select(&matching, &step, matches);
            found |= matches;
        }
        found &= Choice::from(u8::from(seed.is_some()));
        Ok(bool::from(found).then_some(TimeStep(matching)))
    }
}

/// Copies the text: the original buffer, with its spare capacity, is wiped here.
fn secret_text(text: Zeroizing<String>) -> SecretString {
    SecretString::from(text.as_str())
}

#[cfg(test)]
mod tests;
