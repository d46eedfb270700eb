//! Passcodes: the second factor of a login.

use crate::digest::{Digest, DigestPurpose, RowMac};
use crate::id::{AccountId, OrganizationId};
use crate::port::KeyedDigester;
use crate::sealed::SealedSeed;
use crate::time::Timestamp;
use secrecy::{ExposeSecret, SecretString};

/// A time step of 30 seconds, counted from the epoch (RFC 6238 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeStep(pub i64);

impl TimeStep {
    /// Value if no step was ever used.
    pub const NONE: Self = Self(0);
    /// Duration of a step, in seconds.
    pub const SECONDS: i64 = 30;

    /// Returns the step at `time`.
    pub const fn at(time: Timestamp) -> Self {
        Self(time.as_seconds().div_euclid(Self::SECONDS))
    }

    /// Returns the next step.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the previous step.
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Returns the start of the step.
    pub const fn begins_at(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(Self::SECONDS * 1000))
    }
}

/// Digits of a code. `Debug` does not show them.
pub struct Digits(SecretString);

impl Digits {
    /// Returns the digits without hyphens.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl std::fmt::Debug for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digits(…)")
    }
}

/// A received passcode, by its form.
#[derive(Debug)]
pub enum Passcode {
    /// Six digits: a time-based code.
    TimeBased(Digits),
    /// Twenty digits: a recovery code.
    Recovery(Digits),
    /// Any other text, which no account can have.
    Impossible,
}

impl Passcode {
    /// Number of digits of a time-based code.
    pub const TIME_BASED_DIGITS: usize = 6;
    /// Number of digits of a recovery code.
    pub const RECOVERY_DIGITS: usize = 20;

    /// Parses a passcode by its form, without trimming or normalizing it. A recovery code is accepted with or without
    /// the hyphens between its groups of five.
    pub fn read(text: &SecretString) -> Self {
        let text = text.expose_secret(); // only to distinguish the form
        if text.len() == Self::TIME_BASED_DIGITS && all_digits(text) {
            return Self::TimeBased(Digits(text.into()));
        }
        if text.len() == Self::RECOVERY_DIGITS && all_digits(text) {
            return Self::Recovery(Digits(text.into()));
        }
        let groups: Vec<&str> = text.split('-').collect();
        if groups.len() == 4 && groups.iter().all(|group| group.len() == 5 && all_digits(group)) {
            return Self::Recovery(Digits(groups.concat().into()));
        }
        Self::Impossible
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A TOTP secret in the forms that authenticator apps accept. It is shown only once.
pub struct PasscodeSecret {
    /// Base32 text (RFC 4648), without padding.
    pub secret: SecretString,
    /// The `otpauth://totp/…` address.
    pub uri: SecretString,
}

/// A recovery code in groups of five digits. It is shown only once.
pub struct RecoveryCode(pub SecretString);

/// Time for which a new TOTP secret is pending confirmation, in seconds: 1 h.
pub const PENDING_SECONDS: i64 = 3600;
/// Maximum number of codes that may be tried to confirm a new TOTP secret.
pub const CONFIRMATIONS: u32 = 5;

/// A TOTP secret that is pending confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingSeed {
    /// The sealed TOTP secret.
    pub seed: SealedSeed,
    /// Time at which the confirmation expires.
    pub expires_at: Timestamp,
    /// MAC of the row. If it does not verify, the secret cannot be confirmed.
    pub digest: RowMac,
}

impl PendingSeed {
    /// Signs the secret of an account and returns it as stored.
    pub fn sign(
        account: (OrganizationId, AccountId),
        seed: SealedSeed,
        expires_at: Timestamp,
        digester: &dyn KeyedDigester,
    ) -> Self {
        let sign = |parts: &[&[u8]]| digester.sign(DigestPurpose::UnconfirmedSecrets, parts);
        let digest = Self::with_parts(account, (&seed, expires_at), sign);
        Self { seed, expires_at, digest }
    }

    /// Returns whether the row's MAC verifies. Its key must be [loaded](KeyedDigester::load_keys).
    pub fn mac_is_valid(&self, account: (OrganizationId, AccountId), digester: &dyn KeyedDigester) -> bool {
        let is_signed = |parts: &[&[u8]]| digester.is_signed(DigestPurpose::UnconfirmedSecrets, parts, &self.digest);
        Self::with_parts(account, (&self.seed, self.expires_at), is_signed)
    }

    fn with_parts<T>(
        (organization, account): (OrganizationId, AccountId),
        (seed, expires_at): (&SealedSeed, Timestamp),
        digest: impl FnOnce(&[&[u8]]) -> T,
    ) -> T {
        let expires_at = expires_at.as_millis().to_be_bytes();
        digest(&[organization.as_bytes(), account.as_bytes(), seed.id.as_bytes(), &expires_at])
    }
}

/// Returns whether one more code may be tried for a TOTP secret that is pending until `expires_at`, after `tried`
/// codes.
pub fn may_be_confirmed(expires_at: Timestamp, tried: u32, now: Timestamp) -> bool {
    now < expires_at && tried < CONFIRMATIONS
}

/// Second factor of a successful verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasscodeProof {
    /// Code of this time step, which must be later than any used before.
    Step(TimeStep),
    /// Recovery code with this digest, which must exist and is deleted.
    RecoveryCode(Digest),
}

impl PasscodeProof {
    /// Returns the digest of the recovery code, if it is one.
    pub const fn recovery_code(self) -> Option<Digest> {
        match self {
            Self::RecoveryCode(code) => Some(code),
            Self::Step(_) => None,
        }
    }
}
