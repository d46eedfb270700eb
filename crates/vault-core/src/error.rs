//! Why an operation was not carried out: one type for all of them.

use crate::check::CheckReason;
use crate::check::CheckReport;
use crate::credential::CredentialType;
use crate::field::FieldError;
use crate::id::CredentialId;
use crate::identity::WorkloadRefusal;
use crate::password::PasswordFlaw;
use crate::port::{HashError, NoEntropy, SealError, StoreError, TokenRefusal};
use crate::principal::Denial;
use std::fmt;

/// Why an operation was not carried out. Nothing was changed, except where [`ErrorKind::Retry`] says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The principal may not act.
    #[error(transparent)]
    Denied(Denial),
    /// Values of the request are refused, each named by its field.
    #[error("{}", Listed(.0))]
    Invalid(Vec<FieldError>),
    /// A rule of the operation forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed. Never [`StoreError::Denied`] or [`StoreError::Refused`]: those are [`Error::Denied`] and
    /// [`Error::Refused`].
    #[error(transparent)]
    Store(StoreError),
    /// Sealing or opening failed.
    #[error(transparent)]
    Seal(SealError),
    /// A password could not be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// The operating system returns no randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
}

/// What a rule forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No such account, credential, integration, session or activation that the principal may see.
    #[error("not found")]
    NotFound,
    /// No organization has this name.
    #[error("no organization has this name")]
    NoOrganization,
    /// The access token does not work.
    #[error("the access token is invalid: {0}")]
    Token(TokenRefusal),
    /// An identity token does not prove a workload that may act.
    #[error("{0}")]
    UnknownWorkload(Box<WorkloadRefusal>),
    /// An issuer has this name.
    #[error("an issuer has this name")]
    IssuerExists,
    /// Integrations trust the issuer.
    #[error("integrations trust the issuer: {}", .0.join(", "))]
    IssuerTrusted(Vec<String>),
    /// The issuer's keys cannot be fetched or used, with the reason.
    #[error("the keys of the issuer cannot be used: {0}")]
    IssuerKeys(String),
    /// Wrong e-mail, password or passcode, or the account is locked or disabled. Which of them is never said.
    #[error("wrong e-mail, password or passcode, or the account is locked or disabled")]
    InvalidLogin,
    /// Invalid, used or expired enrolment code, or wrong passcode.
    #[error("invalid, used or expired enrolment code, or wrong passcode")]
    InvalidEnrolment,
    /// No new passcode seed waits for confirmation.
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
    /// Too many invitations of the organization were for addresses in use; no further ones for this many seconds.
    #[error("too many invitations to addresses in use; retry in {0} s")]
    TooManyConflicts(u32),
    /// Several organizations have invited the e-mail address.
    #[error("{0} organizations have invited this address; name one")]
    SeveralInvitations(usize),
    /// Another organization or integration has the name.
    #[error("the name is taken")]
    NameTaken,
    /// The account has not accepted its invitation.
    #[error("the account has not accepted its invitation")]
    OnlyInvited,
    /// The account's owner has to enrol again first.
    #[error("the account's owner has to enrol again first")]
    AwaitsEnrolment,
    /// Nobody can re-enrol their own account.
    #[error("nobody can re-enrol their own account")]
    OwnAccount,
    /// The organization would be left without an active admin.
    #[error("the last active admin cannot be demoted, disabled, re-enrolled or deleted")]
    LastAdmin,
    /// The cursor was not made for this list.
    #[error("invalid cursor")]
    Cursor,
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    IdempotencyMismatch,
    /// The e-mail address belongs to no active account of the organization.
    #[error("the address belongs to no active account of the organization")]
    NoMember,
    /// A limit of the organization is reached.
    #[error("the limit of {limit} {what} is reached")]
    LimitReached {
        /// The limited objects, in the plural.
        what: &'static str,
        /// The limit.
        limit: i64,
    },
    /// No part of this process may connect to storage.
    #[error("this server does not check credentials before it saves them")]
    VerifyUnavailable,
    /// The storage refused the credential.
    #[error("the credential was checked against its storage and does not work")]
    NotUsable(CheckReport),
    /// The integration's patterns do not cover the namespace, whether it exists or not.
    #[error("the integration has no access to this namespace")]
    NamespaceNotAllowed,
    /// The namespace is frozen.
    #[error("the namespace is frozen")]
    Frozen,
    /// The namespace has no credentials.
    #[error("the namespace has no credentials")]
    NamespaceEmpty,
    /// The namespace has more credentials than can be activated at once.
    #[error("the namespace has too many credentials for one activation")]
    NamespaceTooLarge,
    /// The integration's limit of live activations is reached.
    #[error("the integration's limit of live activations is reached")]
    TooManyLive,
    /// A credential cannot be issued in the requested form; so none was.
    #[error("no short-lived credential can be issued for {credential}: {reason}")]
    NotVended {
        /// The credential.
        credential: CredentialId,
        /// Reason.
        reason: CheckReason,
    },
    /// What the change was decided on has changed: for a store, since it was read; for an operation, again and again.
    #[error("the row was changed at the same time by another request; retry")]
    Contended,
    /// The object has changed since the caller read it.
    #[error("the credential has changed since it was read: read it again, then retry")]
    Changed,
    /// The credential has no version of this number that can be promoted or destroyed.
    #[error("the credential has no such version")]
    NoSuchVersion,
    /// The current version cannot be destroyed.
    #[error("this is the current version: promote another one first, or delete the credential")]
    CurrentVersion,
    /// The new data is of another type than the credential.
    #[error("the credential is of type {}; data can be replaced only by data of the same type", .0.as_str())]
    TypeDiffers(CredentialType),
    /// The credential may be handed out only as something short-lived, and its data has no such form.
    #[error("the credential has `vend: short`, but no short-lived form can be made of this data: {0}")]
    NoShortForm(CheckReason),
    /// No part of this deployment checks credentials.
    #[error("this server does not check saved credentials")]
    ChecksUnavailable,
    /// No activation side was seen for a minute.
    #[error("no process with --activation-listen ran in the last minute, so the credential cannot be checked")]
    NoChecker,
    /// It was done too often within an hour; it is refused for this many seconds.
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

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller is not, or no longer, known: log in again.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// The request is refused as it is: change it.
    Invalid,
    /// The object does not exist for this caller.
    NotFound,
    /// The state of the vault forbids it: change that, or the request.
    Conflict,
    /// Overloaded or unreachable: the same request may succeed later. A decision whose answer was lost may have been
    /// made.
    Retry,
    /// Stored data is damaged: an operator has to look.
    Damaged,
    /// A fault of this software or its set-up.
    Fault,
}

impl Error {
    /// What the caller can do about it.
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
    /// What the caller can do about it.
    pub const fn kind(self) -> ErrorKind {
        match self {
            Self::InsufficientRole => ErrorKind::Forbidden,
            Self::SessionEnded | Self::AccountChanged | Self::OrganizationClosed | Self::Integration(_) => {
                ErrorKind::Unauthenticated
            }
        }
    }
}

impl Refusal {
    /// What the caller can do about it.
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
            | Self::ChecksUnavailable
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
            | Self::OnlyInvited
            | Self::AwaitsEnrolment
            | Self::OwnAccount
            | Self::LastAdmin
            | Self::NamespaceTooLarge
            | Self::TooManyLive
            | Self::NotVended { .. }
            | Self::Changed
            | Self::NoShortForm(_)
            | Self::NoChecker
            | Self::CurrentVersion => ErrorKind::Conflict,
            Self::Contended | Self::TooManyConflicts(_) | Self::TooOften(_) => ErrorKind::Retry,
            Self::Damaged { .. } => ErrorKind::Damaged,
        }
    }
}

impl StoreError {
    /// What the caller can do about it.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Denied(denial) => denial.kind(),
            Self::Refused(refusal) => refusal.kind(),
            Self::Unavailable(_) => ErrorKind::Retry,
            Self::Integrity { .. } => ErrorKind::Damaged,
            Self::Fault(_) => ErrorKind::Fault,
        }
    }
}

impl Error {
    /// Whether a row names a key that does not exist: after a rotation, such a row was read before its end.
    pub(crate) const fn is_unknown_key(&self) -> bool {
        matches!(self, Self::Seal(SealError::UnknownKey { .. }))
    }
}

impl SealError {
    /// What the caller can do about it. [`SealError::NoKeys`]: the organization was deleted while it was used.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoKeys => ErrorKind::Unauthenticated,
            Self::Integrity { .. } | Self::UnknownKey { .. } => ErrorKind::Damaged,
            Self::Store(error) => error.kind(),
            Self::Fault(_) => ErrorKind::Fault,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Denied(denial) => Self::Denied(denial),
            StoreError::Refused(refusal) => Self::Refused(refusal),
            error => Self::Store(error),
        }
    }
}

impl From<SealError> for Error {
    fn from(error: SealError) -> Self {
        match error {
            // The organization was deleted between the request and the look at its keys.
            SealError::NoKeys => Self::Denied(Denial::OrganizationClosed),
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

impl From<TokenRefusal> for Error {
    fn from(refusal: TokenRefusal) -> Self {
        Refusal::Token(refusal).into()
    }
}

impl PasswordFlaw {
    /// The refusal of the field at `pointer` that holds the password.
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
