//! Time, ids, chance and events.

use crate::audit::{AuditRecord, Origin, SealedAuditRecord};
use crate::check::CheckReason;
use crate::id::{AccountId, IntegrationId, KeyId, SessionId};
use crate::identity::{IssuerName, WorkloadRefusal};
use crate::integration::IntegrationRefusal;
use crate::network::Network;
use crate::time::Timestamp;
use std::time::Duration;
use uuid::Uuid;

/// The time of day.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// A clock that stands still.
impl Clock for Timestamp {
    fn now(&self) -> Timestamp {
        *self
    }
}

/// Makes ids.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait IdGenerator: Send + Sync {
    /// A new id made at `now`: UUID version 7 (RFC 9562), later ids sorting after earlier ones of this process.
    fn ordered(&self, now: Timestamp) -> Uuid;
    /// A new id of 122 random bits: UUID version 4, for what must not be guessed.
    fn random(&self) -> Uuid;
}

/// Knows which request is being carried out.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait RequestContext: Send + Sync {
    /// The request that the calling task carries out; nothing known, if it carries out none.
    fn current(&self) -> Origin;
}

/// For programs whose acts come from no request.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRequest;

impl RequestContext for NoRequest {
    fn current(&self) -> Origin {
        Origin::default()
    }
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
#[error("the operating system returned no random bytes")]
pub struct NoEntropy;

/// Something worth counting or logging. Holds nothing secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A password was verified against an account's own verifier. Verifying a decoy does not count.
    PasswordEvaluated,
    /// A login succeeded, or the owner of an account proved to be present for a change of it.
    LoginSucceeded {
        /// The account.
        account: AccountId,
        /// The new session; `None` where the owner proved to be present.
        session: Option<SessionId>,
        /// Where it came from.
        network: Network,
    },
    /// A login was refused.
    LoginRefused {
        /// Why.
        refusal: LoginRefusal,
        /// The account, where the address has one.
        account: Option<AccountId>,
        /// Where it came from.
        network: Network,
    },
    /// A refused login began a wait, or made it longer.
    LoginLocked {
        /// The account.
        account: AccountId,
        /// Where the login came from; the wait holds for all networks that are counted with it.
        network: Network,
        /// Failed logins in a row.
        attempts: u32,
        /// The end of the wait.
        until: Timestamp,
    },
    /// A refused login closed the class that counted it.
    LoginClassClosed {
        /// The account.
        account: AccountId,
        /// Where the login came from.
        network: Network,
    },
    /// A wrong passcode was one too many: time-based passcodes of the account are disabled.
    LoginPasscodeDisabled {
        /// The account.
        account: AccountId,
        /// Where the login came from.
        network: Network,
    },
    /// A login from a network that had to wait before succeeded: the failures are forgotten.
    LoginUnlocked {
        /// The account.
        account: AccountId,
        /// Where the login came from.
        network: Network,
    },
    /// An act that the audit records was carried out or refused; logins have events of their own.
    Recorded(Box<AuditRecord>),
    /// A row that grants does not fit its code, or a stored secret does not open.
    IntegrityFailure {
        /// The table.
        table: &'static str,
        /// The row's id.
        id: String,
    },
    /// Who showed an integration token may not act.
    IntegrationRefused {
        /// Why.
        refusal: IntegrationRefusal,
        /// The integration, where the token is or was one's.
        integration: Option<IntegrationId>,
        /// Where it came from, if it came over a network.
        network: Option<Network>,
    },
    /// A token of a workload did not prove that it may act.
    WorkloadRefused {
        /// Why.
        refusal: WorkloadRefusal,
        /// The integration that it names, if there is one.
        integration: Option<IntegrationId>,
        /// Where it came from, if it came over a network.
        network: Option<Network>,
    },
    /// The keys of an issuer could not be fetched.
    IssuerUnreachable {
        /// The issuer.
        issuer: IssuerName,
        /// Why not, in fixed words.
        reason: &'static str,
    },
    /// A short-lived credential was preferred, but not available; the saved one was issued.
    ShortFormMissed(CheckReason),
    /// Changes were committed together.
    ChangesCommitted {
        /// How many they are.
        changes: usize,
    },
    /// Something was tried again.
    Retried(RetryReason),
    /// The database did not say whether a commit stands.
    CommitUnsure,
    /// A request was answered as the same request under the same idempotency key was before.
    RequestRepeated,
    /// This process took the right to deliver events that another process had before.
    EventsTakenOver,
    /// Somebody had to wait for a connection to the database.
    ConnectionAwaited {
        /// For how long.
        waited: Duration,
        /// Whether a connection became free in time.
        obtained: bool,
    },
    /// An organization key reached its use limit and was replaced.
    OrganizationKeyReplaced(KeyId),
    /// An organization key reached its use limit and could not be replaced. It seals on until its last use.
    OrganizationKeyNotReplaced(KeyId),
}

impl Event {
    /// That the act of this record was carried out.
    pub fn recorded(audit: &SealedAuditRecord) -> Self {
        Self::Recorded(Box::new(audit.record.clone()))
    }
}

/// Why something was tried again, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryReason {
    /// A change failed or was refused, so those that shared its transaction were made one by one.
    SharedTransaction,
    /// Transactions met in the database.
    TransactionsMet,
    /// The connection to the database was lost.
    ConnectionLost,
    /// Another change of the same credential came between.
    CredentialChanged,
    /// A key was replaced after something was sealed under it.
    KeyReplaced,
}

impl RetryReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::SharedTransaction,
        Self::TransactionsMet,
        Self::ConnectionLost,
        Self::CredentialChanged,
        Self::KeyReplaced,
    ];

    /// The reason's name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SharedTransaction => "shared-transaction",
            Self::TransactionsMet => "transactions-met",
            Self::ConnectionLost => "connection-lost",
            Self::CredentialChanged => "credential-changed",
            Self::KeyReplaced => "key-replaced",
        }
    }
}

/// Why a login was refused, for metrics and log; the response never contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginRefusal {
    /// A value that no account can have.
    Impossible,
    /// No such address.
    UnknownAddress,
    /// Within a wait, or the class is closed.
    Throttled,
    /// Wrong password.
    WrongPassword,
    /// The right password, and a passcode that is wrong or a recovery code that is not stored.
    WrongPasscode,
    /// The right password and a time-based code that was used before. Does not count as a wrong passcode.
    SpentPasscode,
    /// The right password and a time-based code, but such codes are disabled until a reset.
    PasscodeDisabled,
    /// The account or organization is disabled, or its row grants nothing.
    Closed,
    /// What the login was decided on changed while it ran.
    Overtaken,
}

impl LoginRefusal {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Impossible,
        Self::UnknownAddress,
        Self::Throttled,
        Self::WrongPassword,
        Self::WrongPasscode,
        Self::SpentPasscode,
        Self::PasscodeDisabled,
        Self::Closed,
        Self::Overtaken,
    ];

    /// Whether the password was right.
    pub const fn follows_right_password(self) -> bool {
        matches!(self, Self::WrongPasscode | Self::SpentPasscode | Self::PasscodeDisabled)
    }

    /// The reason's name in metrics and the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Impossible => "malformed",
            Self::UnknownAddress => "unknown-address",
            Self::Throttled => "locked",
            Self::WrongPassword => "wrong-password",
            Self::WrongPasscode => "wrong-passcode",
            Self::SpentPasscode => "spent-passcode",
            Self::PasscodeDisabled => "passcode-disabled",
            Self::Closed => "disabled",
            Self::Overtaken => "changed",
        }
    }
}

/// Takes events for metrics and logs.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait EventSink: Send + Sync {
    /// Takes one.
    fn emit(&self, event: Event);
}
