//! Ports for time, IDs, randomness and events.

use crate::audit::{AuditRecord, SealedAuditRecord};
use crate::check::CheckReason;
use crate::id::{AccountId, IntegrationId, KeyId, SessionId};
use crate::identity::{IssuerName, WorkloadRefusal};
use crate::integration::IntegrationRefusal;
use crate::network::Network;
use crate::time::Timestamp;
use std::borrow::Cow;
use std::time::Duration;
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

/// Port for the time of day.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// A clock that always returns the same time.
impl Clock for Timestamp {
    fn now(&self) -> Timestamp {
        *self
    }
}

/// Port that generates IDs.
pub trait IdGenerator: Send + Sync {
    /// Generates an ID at `now`: UUID version 7 (RFC 9562). Later IDs of this process sort after earlier ones.
    fn ordered(&self, now: Timestamp) -> Uuid;
    /// Generates an ID of 122 random bits: UUID version 4, for values that must not be guessed.
    fn random(&self) -> Uuid;
}

/// Port for cryptographic randomness.
pub trait Entropy: Send + Sync {
    /// Fills `bytes` with random bytes.
    ///
    /// # Errors
    /// The operating system returns none.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// The operating system returns no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system returned no random bytes")]
pub struct NoEntropy;

/// An event for metrics and logs. It contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A password was verified against the verifier of its account. Verification against a decoy does not count.
    PasswordEvaluated,
    /// A login succeeded, or a user re-authenticated for a change of their account.
    LoginSucceeded {
        /// ID of the account.
        account: AccountId,
        /// ID of the new session. `None` for a re-authentication.
        session: Option<SessionId>,
        /// Origin of the request.
        network: Network,
    },
    /// A login was refused.
    LoginRefused {
        /// Reason.
        refusal: LoginRefusal,
        /// ID of the account, if the address has one.
        account: Option<AccountId>,
        /// Origin of the request.
        network: Network,
    },
    /// A refused login started or extended a lockout.
    LoginLocked {
        /// ID of the account.
        account: AccountId,
        /// Origin of the login. The lockout applies to all networks that share its throttle bucket.
        network: Network,
        /// Failed logins in a row.
        attempts: u32,
        /// End of the lockout.
        until: Timestamp,
    },
    /// A refused login locked its throttle bucket.
    LoginBucketLocked {
        /// ID of the account.
        account: AccountId,
        /// Origin of the login.
        network: Network,
    },
    /// Too many wrong passcodes disabled the time-based passcodes of the account.
    LoginPasscodeDisabled {
        /// ID of the account.
        account: AccountId,
        /// Origin of the login.
        network: Network,
    },
    /// A login succeeded after a lockout for its network, and the failures were reset.
    LoginUnlocked {
        /// ID of the account.
        account: AccountId,
        /// Origin of the login.
        network: Network,
    },
    /// An audited action was carried out or refused. Logins have their own events.
    Recorded(Box<AuditRecord>),
    /// The MAC of a row does not verify, or a stored secret cannot be decrypted.
    IntegrityFailure {
        /// Table of the row.
        table: &'static str,
        /// ID of the row.
        id: String,
    },
    /// A request with an integration token was refused.
    IntegrationRefused {
        /// Reason.
        refusal: IntegrationRefusal,
        /// ID of the integration, if the token is or was one of an integration.
        integration: Option<IntegrationId>,
        /// Where it came from, if it came over a network.
        network: Option<Network>,
    },
    /// A request with an identity token was refused.
    WorkloadRefused {
        /// Reason.
        refusal: WorkloadRefusal,
        /// ID of the integration that the request names, if it exists.
        integration: Option<IntegrationId>,
        /// Where it came from, if it came over a network.
        network: Option<Network>,
    },
    /// The keys of an issuer could not be fetched.
    IssuerUnreachable {
        /// Name of the issuer.
        issuer: IssuerName,
        /// Reason, in fixed words and the URL of the outgoing proxy.
        reason: Cow<'static, str>,
    },
    /// A short-lived credential was preferred but not available, and the saved one was issued.
    ShortFormMissed(CheckReason),
    /// Changes were committed together.
    ChangesCommitted {
        /// Number of changes.
        changes: usize,
    },
    /// An operation was retried.
    Retried(RetryReason),
    /// The outcome of a commit is unknown.
    CommitIndeterminate,
    /// A request was answered with the result of an earlier one with the same idempotency key.
    RequestRepeated,
    /// This process acquired the lease for event delivery, which another process had before.
    EventsTakenOver,
    /// A request had to wait for a database connection.
    ConnectionAwaited {
        /// Duration of the wait.
        waited: Duration,
        /// Whether a connection was obtained in time.
        obtained: bool,
    },
    /// The disk of the database was full, and has space again.
    SpaceFreed,
    /// An organization key reached its use limit and was replaced.
    OrganizationKeyReplaced(KeyId),
}

impl Event {
    /// Creates the event that the action of this record was carried out.
    pub fn recorded(audit: &SealedAuditRecord) -> Self {
        Self::Recorded(Box::new(audit.record.clone()))
    }
}

/// Reason of a retry, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum RetryReason {
    /// A change failed or was refused, so the changes that shared its transaction were made one by one.
    SharedTransaction,
    /// Transactions conflicted in the database.
    SerializationFailure,
    /// The connection to the database was lost.
    ConnectionLost,
    /// A key was replaced after a value was sealed with it.
    KeyReplaced,
}

named!(RetryReason);

/// Reason why a login was refused, for metrics and logs. No response contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum LoginRefusal {
    /// An address, password or passcode that no account can have.
    #[strum(to_string = "malformed")]
    Impossible,
    /// The address is unknown.
    UnknownAddress,
    /// A lockout lasts, or the throttle bucket is locked.
    #[strum(to_string = "locked")]
    Throttled,
    /// Wrong password.
    WrongPassword,
    /// Correct password with a wrong passcode, or with a recovery code that is not stored.
    WrongPasscode,
    /// Correct password with a time-based passcode that was used before. It does not count as a wrong passcode.
    ReusedPasscode,
    /// Correct password with a time-based passcode, but time-based passcodes are disabled until a reset.
    PasscodeDisabled,
    /// The account or organization is disabled, or the MAC of its row does not verify.
    #[strum(to_string = "disabled")]
    Closed,
    /// The facts of the login changed while it ran.
    #[strum(to_string = "changed")]
    Overtaken,
}

named!(LoginRefusal);

impl LoginRefusal {
    /// Returns whether the password was correct.
    pub const fn follows_right_password(self) -> bool {
        matches!(self, Self::WrongPasscode | Self::ReusedPasscode | Self::PasscodeDisabled)
    }
}

/// Port that receives events for metrics and logs.
pub trait EventSink: Send + Sync {
    /// Processes an event.
    fn emit(&self, event: Event);
}
