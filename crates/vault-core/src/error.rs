//! The error type of all operations.

use crate::check::CheckReason;
use crate::check::CheckReport;
use crate::credential::CredentialType;
use crate::federation::FederationKeyError;
use crate::field::FieldError;
use crate::id::CredentialId;
use crate::identity::WorkloadRefusal;
use crate::password::PasswordError;
use crate::port::{HashError, NoEntropy, SealError, StoreError, TokenRefusal};
use crate::principal::Denial;
use std::fmt;

/// Error of an operation. Nothing was changed, except possibly with [`ErrorKind::Retry`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The principal is not authorized.
    #[error(transparent)]
    Denied(Denial),
    /// Values of the request are invalid. Each error names its field.
    #[error("{}", Listed(.0))]
    Invalid(Vec<FieldError>),
    /// A rule of the operation forbids the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Encryption or decryption failed.
    #[error(transparent)]
    Seal(SealError),
    /// A password could not be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// The operating system returns no randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
}

/// Refusal of a request by a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The account, credential, integration, session or activation does not exist, or the principal may not see it.
    #[error("not found")]
    NotFound,
    /// No organization has this name.
    #[error("no organization has this name")]
    NoOrganization,
    /// The access token is invalid.
    #[error("the access token is invalid: {0}")]
    Token(TokenRefusal),
    /// The identity token does not authorize a workload.
    #[error("{0}")]
    UnknownWorkload(Box<WorkloadRefusal>),
    /// An issuer with this name exists.
    #[error("an issuer with this name already exists")]
    IssuerExists,
    /// Integrations trust the issuer.
    #[error("integrations trust the issuer: {}", .0.join(", "))]
    IssuerTrusted(Vec<String>),
    /// A rule of the signing keys of federation tokens forbids the change.
    #[error(transparent)]
    FederationKey(#[from] FederationKeyError),
    /// The keys of the issuer cannot be fetched or used, for this reason.
    #[error("the keys of the issuer cannot be used: {0}")]
    IssuerKeys(String),
    /// Wrong e-mail, password or passcode, or the account is locked or disabled. No response states which of them.
    #[error("wrong e-mail, password or passcode, or the account is locked or disabled")]
    InvalidLogin,
    /// Invalid, used or expired enrolment code, or wrong passcode.
    #[error("invalid, used or expired enrolment code, or wrong passcode")]
    InvalidEnrolment,
    /// No new TOTP secret is pending confirmation.
    #[error("no passcode replacement is pending")]
    NothingPending,
    /// The e-mail address belongs to an account, of this organization or another, or to an open invitation of this one.
    #[error("an account or an open invitation of the organization has this address")]
    AddressTaken,
    /// The e-mail address belongs to an account, of this organization or another.
    #[error("an account has this address, perhaps in another organization; an address can have only one account")]
    AddressInUse,
    /// The organization has an open invitation for the e-mail address.
    #[error("the organization has an open invitation for this address")]
    AlreadyInvited,
    /// Too many invitations of the organization were for addresses in use. Further ones are refused for this number of
    /// seconds.
    #[error("too many invitations to addresses in use; retry in {0} s")]
    TooManyConflicts(u32),
    /// Several organizations have invited the e-mail address.
    #[error("{0} organizations have invited this address; name one")]
    SeveralInvitations(usize),
    /// Another organization or integration has the name.
    #[error("the name is already in use")]
    NameTaken,
    /// The account has not accepted its invitation.
    #[error("the account has not accepted its invitation")]
    OnlyInvited,
    /// Users cannot re-enrol their own account.
    #[error("you cannot re-enrol your own account")]
    OwnAccount,
    /// The organization would have no active admin.
    #[error("the last active admin cannot be demoted, disabled, re-enrolled or deleted")]
    LastAdmin,
    /// The cursor was not created for this list.
    #[error("invalid cursor")]
    Cursor,
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    IdempotencyMismatch,
    /// The e-mail address belongs to no active account of the organization.
    #[error("the address belongs to no active account of the organization")]
    NoMember,
    /// The organization has the maximum number of these objects.
    #[error("the limit of {limit} {what} is reached")]
    LimitReached {
        /// The limited objects, in the plural.
        what: &'static str,
        /// The limit.
        limit: i64,
    },
    /// No activation process is part of this server, so it cannot connect to storage.
    #[error("this server does not check credentials before it saves them")]
    VerifyUnavailable,
    /// The storage rejected the credential.
    #[error("the credential was checked against its storage and does not work")]
    NotUsable(CheckReport),
    /// The patterns of the integration do not cover the namespace. It may or may not exist.
    #[error("the integration has no access to this namespace")]
    NamespaceNotAllowed,
    /// The namespace is frozen.
    #[error("the namespace is frozen")]
    Frozen,
    /// The namespace has no credentials.
    #[error("the namespace has no credentials")]
    NamespaceEmpty,
    /// The namespace has more credentials than one activation may issue.
    #[error("the namespace has too many credentials for one activation")]
    NamespaceTooLarge,
    /// The integration has the maximum number of active activations.
    #[error("the integration's limit of active activations is reached")]
    TooManyLive,
    /// A credential cannot be issued in the requested form, so nothing was issued.
    #[error("no short-lived credential can be issued for {credential}: {reason}")]
    NotVended {
        /// The credential.
        credential: CredentialId,
        /// Reason.
        reason: CheckReason,
    },
    /// The facts of the change are outdated: for a store, they changed since they were read. An operation returns this
    /// after several retries.
    #[error("the row was changed at the same time by another request; retry")]
    Contended,
    /// The object has changed since the caller read it.
    #[error("the credential has changed since it was read: read it again, then retry")]
    Changed,
    /// The credential has no version with this number that can be promoted or destroyed.
    #[error("the credential has no such version")]
    NoSuchVersion,
    /// The current version cannot be destroyed.
    #[error("this is the current version: promote another one first, or delete the credential")]
    CurrentVersion,
    /// The new data has another type than the credential.
    #[error("the credential is of type {}; data can be replaced only by data of the same type", .0.as_str())]
    TypeDiffers(CredentialType),
    /// The credential may be issued only in short-lived form, and its data has no such form.
    #[error("the credential has `vend: short`, but no short-lived credential can be derived from this data: {0}")]
    NoShortForm(CheckReason),
    /// The credential has a saved secret, so no provider trust belongs to it.
    #[error("credential {0} has a saved secret. Only keyless credentials have a provider trust")]
    NotKeyless(CredentialId),
    /// Keyless credentials are not enabled.
    #[error("this server has no federation issuer. Its operator must set --federation-issuer")]
    FederationOff,
    /// No activation process was present within the last minute.
    #[error("no process with --activation-listen ran in the last minute, so the credential cannot be checked")]
    NoChecker,
    /// The hourly limit is exceeded. Further requests are refused for this number of seconds.
    #[error("too often within an hour; retry in {0} s")]
    TooOften(u32),
    /// A row fails its integrity check, so it is not changed.
    #[error("row {id} of table {table} fails its integrity check: it was changed outside OrgVault")]
    Damaged {
        /// The table.
        table: &'static str,
        /// ID of the row.
        id: String,
    },
}

/// Action that the caller of an operation can take after an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller is not authenticated, or no longer: log in again.
    Unauthenticated,
    /// The caller is not authorized.
    Forbidden,
    /// The request is invalid: change it.
    Invalid,
    /// The object does not exist for this caller.
    NotFound,
    /// The state of the vault forbids the request: change the state or the request.
    Conflict,
    /// The vault is overloaded or unreachable: the same request may succeed later. If the response of a transaction was
    /// lost, it may have been committed.
    Retry,
    /// Stored data is damaged: an operator must act.
    Damaged,
    /// An error of this software or its configuration.
    Fault,
}

impl Error {
    /// Returns the action that the caller can take.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Denied(denial) => denial.kind(),
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Refused(refusal) => refusal.kind(),
            Self::Store(error) => error.kind(),
            Self::Seal(error) => error.kind(),
            Self::Hash(HashError::Busy | HashError::NoMemory { .. }) => ErrorKind::Retry,
            Self::Hash(_) | Self::Entropy(_) => ErrorKind::Fault,
        }
    }
}

impl Denial {
    /// Returns the action that the caller can take.
    pub const fn kind(self) -> ErrorKind {
        match self {
            Self::InsufficientRole => ErrorKind::Forbidden,
            Self::SessionEnded | Self::AccountChanged | Self::OrganizationDisabled | Self::Integration(_) => {
                ErrorKind::Unauthenticated
            }
        }
    }
}

impl Refusal {
    /// Returns the action that the caller can take.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownWorkload(_) | Self::Token(_) | Self::InvalidLogin | Self::InvalidEnrolment => {
                ErrorKind::Unauthenticated
            }
            Self::NamespaceNotAllowed | Self::Frozen => ErrorKind::Forbidden,
            Self::NotFound | Self::NoSuchVersion | Self::NoOrganization | Self::NamespaceEmpty => ErrorKind::NotFound,
            Self::Cursor
            | Self::IdempotencyMismatch
            | Self::TypeDiffers(_)
            | Self::LimitReached { .. }
            | Self::NoMember
            | Self::VerifyUnavailable
            | Self::IssuerKeys(_)
            | Self::NotUsable(_) => ErrorKind::Invalid,
            Self::NothingPending
            | Self::AddressInUse
            | Self::AlreadyInvited
            | Self::SeveralInvitations(_)
            | Self::AddressTaken
            | Self::NameTaken
            | Self::IssuerExists
            | Self::IssuerTrusted(_)
            | Self::FederationKey(_)
            | Self::OnlyInvited
            | Self::OwnAccount
            | Self::LastAdmin
            | Self::NamespaceTooLarge
            | Self::TooManyLive
            | Self::NotVended { .. }
            | Self::Changed
            | Self::NoShortForm(_)
            | Self::NoChecker
            | Self::NotKeyless(_)
            | Self::FederationOff
            | Self::CurrentVersion => ErrorKind::Conflict,
            Self::Contended | Self::TooManyConflicts(_) | Self::TooOften(_) => ErrorKind::Retry,
            Self::Damaged { .. } => ErrorKind::Damaged,
        }
    }
}

impl StoreError {
    /// Returns the action that the caller can take.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Full | Self::Unavailable(_) => ErrorKind::Retry,
            Self::Integrity { .. } => ErrorKind::Damaged,
            Self::Fault(_) => ErrorKind::Fault,
        }
    }
}

impl SealError {
    /// Returns the action that the caller can take.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Integrity { .. } | Self::UnknownKey { .. } => ErrorKind::Damaged,
            Self::Store(error) => error.kind(),
            Self::Fault(_) => ErrorKind::Fault,
        }
    }
}

impl From<SealError> for Error {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Store(error) => error.into(),
            error => Self::Seal(error),
        }
    }
}

impl From<Denial> for Error {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Self {
        Self::Invalid(vec![error])
    }
}

impl From<FederationKeyError> for Error {
    fn from(error: FederationKeyError) -> Self {
        Refusal::FederationKey(error).into()
    }
}

impl From<TokenRefusal> for Error {
    fn from(refusal: TokenRefusal) -> Self {
        Refusal::Token(refusal).into()
    }
}

impl PasswordError {
    /// Creates the error of the password field at `pointer`.
    pub fn at(self, pointer: &str) -> FieldError {
        use crate::field::FieldCode;
        let code = match self {
            Self::TooShort => FieldCode::OutOfRange,
            Self::TooLong => FieldCode::TooLong,
            Self::Common | Self::Guessable => FieldCode::NotAllowed,
        };
        FieldError::new(pointer, code, self.to_string())
    }
}

/// Field errors in one line.
struct Listed<'a>(&'a [FieldError]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}
