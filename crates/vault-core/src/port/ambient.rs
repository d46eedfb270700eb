//! Time, ids, chance and events.

use crate::check::CheckReason;
use crate::id::KeyId;
use crate::integration::IntegrationRefusal;
use crate::time::Timestamp;
use uuid::Uuid;

/// The time of day.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Makes ids.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait IdGenerator: Send + Sync {
    /// A new id made at `now`: UUID version 7 (RFC 9562), later ids sorting after earlier ones of this process.
    fn ordered(&self, now: Timestamp) -> Uuid;
    /// A new id of 122 random bits: UUID version 4, for what must not be guessed.
    fn random(&self) -> Uuid;
}

/// Cryptographic randomness.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Entropy: Send + Sync {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// The operating system gives none.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// The operating system gives no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no randomness")]
pub struct NoEntropy;

/// Something worth counting or logging. Holds nothing secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A password was verified against a hash, a decoy's included.
    PasswordEvaluated,
    /// A login succeeded.
    LoginSucceeded,
    /// A login was refused.
    LoginRefused(LoginRefusal),
    /// A credential was saved.
    CredentialSaved,
    /// A credential was deleted.
    CredentialDeleted,
    /// A row that grants does not fit its code, or a stored secret does not open.
    IntegrityFailure {
        /// The table.
        table: &'static str,
        /// The row's id.
        id: String,
    },
    /// A namespace's credentials were handed out.
    NamespaceActivated,
    /// Who showed an integration token may not act.
    IntegrationRefused(IntegrationRefusal),
    /// Something short-lived was wanted and not to be had; what was saved was handed out in its place.
    ShortFormMissed(CheckReason),
    /// An organization key reached its use limit and was replaced.
    OrganizationKeyReplaced(KeyId),
    /// An organization key reached its use limit and could not be replaced. It seals on until its last use.
    OrganizationKeyNotReplaced(KeyId),
}

/// Why a login was refused, for metrics and the log; its caller is never told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginRefusal {
    /// A value that no account can have.
    Impossible,
    /// No such address.
    UnknownAddress,
    /// Within a wait, or the class is closed.
    TurnedAway,
    /// Wrong password.
    WrongPassword,
    /// Wrong, used or disabled passcode.
    WrongPasscode,
    /// The account or organization is disabled, or its row grants nothing.
    Closed,
    /// What the login was decided on changed while it ran.
    Overtaken,
}

impl LoginRefusal {
    /// The reason's name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Impossible => "impossible",
            Self::UnknownAddress => "unknown-address",
            Self::TurnedAway => "turned-away",
            Self::WrongPassword => "wrong-password",
            Self::WrongPasscode => "wrong-passcode",
            Self::Closed => "closed",
            Self::Overtaken => "overtaken",
        }
    }
}

/// Takes events for metrics and logs.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait EventSink: Send + Sync {
    /// Takes one.
    fn emit(&self, event: Event);
}
