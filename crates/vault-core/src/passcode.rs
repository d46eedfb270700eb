//! Passcodes: the second factor of a login.

use crate::digest::Digest;
use crate::time::Timestamp;
use secrecy::{ExposeSecret, SecretString};

/// A time step of 30 seconds, counted from the epoch (RFC 6238 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeStep(pub i64);

impl TimeStep {
    /// The length of a step, in seconds.
    pub const SECONDS: i64 = 30;

    /// The step of `time`.
    pub const fn at(time: Timestamp) -> Self {
        Self(time.as_seconds().div_euclid(Self::SECONDS))
    }

    /// The step after this one.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The step before this one.
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// When the step begins.
    pub const fn begins_at(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(Self::SECONDS * 1000))
    }
}

/// A code's digits. Never shown by `Debug`.
pub struct Digits(SecretString);

impl Digits {
    /// The digits' text, without hyphens.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl std::fmt::Debug for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digits(…)")
    }
}

/// A passcode as received, by its form.
#[derive(Debug)]
pub enum Passcode {
    /// Six digits: a time-based code.
    TimeBased(Digits),
    /// Twenty digits: a recovery code.
    Recovery(Digits),
    /// Anything else: no account can have it.
    Impossible,
}

impl Passcode {
    /// Digits of a time-based code.
    pub const TIME_BASED_DIGITS: usize = 6;
    /// Digits of a recovery code.
    pub const RECOVERY_DIGITS: usize = 20;

    /// Reads a passcode by its form. Nothing is trimmed or normalised; a recovery code is accepted with
    /// or without the hyphens between its groups of five.
    pub fn read(text: &SecretString) -> Self {
        let text = text.expose_secret(); // only to tell the form by
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

/// The shared secret of a time-based passcode, in the forms that an authenticator takes. Shown once.
pub struct PasscodeSecret {
    /// Base32 text (RFC 4648), without padding.
    pub secret: SecretString,
    /// The `otpauth://totp/…` address.
    pub uri: SecretString,
}

/// A recovery code in groups of five digits. Shown once.
pub struct RecoveryCode(pub SecretString);

/// How long a new seed waits to be confirmed by its owner, in seconds: 1 h.
pub const PENDING_SECONDS: i64 = 3600;
/// How many codes may be tried to confirm a new seed.
pub const CONFIRMATIONS: u32 = 5;

/// Whether a seed that waits until `expires_at` may be confirmed by one more code, `tried` having been tried.
pub fn may_be_confirmed(expires_at: Timestamp, tried: u32, now: Timestamp) -> bool {
    now < expires_at && tried < CONFIRMATIONS
}

/// What proved the second factor of one login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasscodeProof {
    /// The code of this time step; the step must be later than any used before.
    Step(TimeStep),
    /// The recovery code of this digest; it must exist and is deleted.
    RecoveryCode(Digest),
}

impl PasscodeProof {
    /// The digest of the recovery code, if it is one.
    pub const fn recovery_code(self) -> Option<Digest> {
        match self {
            Self::RecoveryCode(code) => Some(code),
            Self::Step(_) => None,
        }
    }
}
