//! Passcodes: the second factor of a login.

use crate::audit::{Affected, Subject};
use crate::digest::Digest;
use crate::entity::{DocumentSecret, Entity, Kind, Lookup};
use crate::id::{AccountId, SecretsId};
use crate::time::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A time step of 30 seconds, counted from the epoch (RFC 6238 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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

/// A TOTP secret of an account that is pending confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingSeed {
    /// ID of the account's secrets after the confirmation.
    pub id: SecretsId,
    /// The TOTP secret, with the key of the recovery codes.
    pub seed: DocumentSecret,
    /// Time at which the confirmation expires.
    pub expires_at: Timestamp,
    /// Number of codes that were tried.
    pub tried: u32,
}

impl Entity for PendingSeed {
    const KIND: Kind = Kind::PendingSeed;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        Vec::new()
    }

    fn due_at(&self) -> Option<Timestamp> {
        Some(self.expires_at)
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Account(AccountId::from_uuid(id)).into()
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
