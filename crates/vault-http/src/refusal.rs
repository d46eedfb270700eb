//! Conversion of use case errors to problems.

use crate::problem_response::ProblemResponse;
use crate::query::verify_unavailable;
use std::error::Error as StdError;
use std::fmt;
use vault_api::ProblemCode;
use vault_core::field::{FieldCode, FieldError};
use vault_core::port::{HashError, SealError, StoreError};
use vault_core::principal::Denial;
use vault_core::{ErrorKind, Refusal};

/// Seconds after which an overload may have ended.
const BUSY_RETRY: u32 = 1;
/// Seconds after which an unavailable database may be reachable again.
const STORE_RETRY: u32 = 5;

impl From<vault_core::Error> for ProblemResponse {
    fn from(error: vault_core::Error) -> Self {
        use vault_core::Error;
        match error {
            Error::Denied(denial) => denial.into(),
            Error::Invalid(errors) => Self::fields(errors),
            Error::Refused(refusal) => refusal.into(),
            Error::Store(error) => error.into(),
            Error::Seal(error) => error.into(),
            Error::Hash(error) => error.into(),
            error => Self::internal().caused_by(Chain(&error)),
        }
    }
}

impl From<Denial> for ProblemResponse {
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::InsufficientRole => Self::insufficient_role(),
            Denial::Integration(refusal) => {
                tracing::debug!(reason = refusal.as_str(), "integration token refused");
                Self::invalid_integration_token()
            }
            Denial::SessionEnded | Denial::AccountChanged | Denial::OrganizationClosed => Self::invalid_token(),
        }
    }
}

impl From<Refusal> for ProblemResponse {
    fn from(refusal: Refusal) -> Self {
        use ProblemCode as Code;
        match refusal {
            Refusal::Token(refusal) => {
                tracing::debug!(reason = %refusal, "token refused");
                Self::invalid_token()
            }
            Refusal::UnknownWorkload(refusal) => Self::unknown_workload(refusal.to_string()),
            // Only operator commands cause these errors.
            Refusal::IssuerExists | Refusal::IssuerTrusted(_) | Refusal::IssuerKeys(_) | Refusal::FederationKey(_) => {
                Self::not_found()
            }
            Refusal::InvalidLogin => Self::invalid_login(),
            Refusal::InvalidEnrolment => Self::invalid_enrolment(),
            Refusal::NotFound => Self::not_found(),
            // The organization was deleted during the request.
            Refusal::NoOrganization => Self::invalid_token(),
            Refusal::NothingPending => {
                Self::conflict("No passcode replacement is pending. Request one first; it is valid for one hour.")
            }
            Refusal::AddressInUse => Self::new(
                Code::AddressInUse,
                "An account has this e-mail address, perhaps in another organization. An address can have only one account.",
            ),
            Refusal::AlreadyInvited => Self::conflict("Your organization has an open invitation for this address."),
            Refusal::SeveralInvitations(_) => {
                Self::conflict("Several organizations have invited this address. Name one.")
            }
            Refusal::TooManyConflicts(seconds) => Self::too_many_invitations(seconds),
            Refusal::AddressTaken => Self::conflict("An account or an open invitation has this address."),
            Refusal::NameTaken => Self::conflict("Another integration of the organization has this name."),
            Refusal::OnlyInvited => {
                Self::conflict("The account has not accepted its invitation: only its role can be changed until then.")
            }
            Refusal::AwaitsEnrolment => Self::conflict("The user must enrol again first."),
            Refusal::OwnAccount => Self::conflict(
                "You cannot re-enrol your own account. Replace your password, passcode or recovery codes, or ask another \
                 admin.",
            ),
            Refusal::LastAdmin => {
                Self::conflict("The last active admin cannot be demoted, disabled, re-enrolled or deleted.")
            }
            Refusal::Cursor => {
                let detail = "invalid cursor; use the one from the previous page's Link header, with the same filters";
                Self::fields(vec![FieldError::new("/cursor", FieldCode::Malformed, detail)])
            }
            Refusal::IdempotencyMismatch => Self::new(
                Code::IdempotencyMismatch,
                "`Idempotency-Key` was already used with another body. Use a new key for a new request.",
            ),
            Refusal::LimitReached { what, limit } => {
                Self::new(Code::LimitReached, format!("The limit of {limit} {what} is reached. Delete some."))
            }
            refusal @ Refusal::NoMember => {
                Self::fields(vec![FieldError::new("/to", FieldCode::NotAllowed, refusal.to_string())])
            }
            Refusal::VerifyUnavailable => Self::fields(vec![verify_unavailable()]),
            Refusal::Changed => {
                let detail = "The credential has changed since it was read. Read it again, then decide.";
                Self::new(Code::PreconditionFailed, detail)
            }
            Refusal::NoSuchVersion => {
                let detail = "The credential has no such version; it may have been destroyed. List its versions.";
                Self::new(Code::NotFound, detail)
            }
            Refusal::CurrentVersion => {
                Self::conflict("This is the current version. Promote another version first, or delete the credential.")
            }
            refusal @ Refusal::TypeDiffers(_) => {
                Self::fields(vec![FieldError::new("/data", FieldCode::NotAllowed, refusal.to_string())])
            }
            refusal @ Refusal::NoShortForm(_) => Self::new(Code::Conflict, capitalized(&refusal.to_string())),
            Refusal::ChecksUnavailable => Self::malformed(
                "This server does not check saved credentials: it runs without --recheck-every and --verify-on-save.",
            ),
            Refusal::NoChecker => Self::new(
                Code::NoChecker,
                "No process with --activation-listen ran in the last minute, so the credential cannot be checked. Ask an operator.",
            ),
            Refusal::TooOften(seconds) => Self::too_often(seconds),
            Refusal::NotUsable(report) => Self::not_usable(&report),
            Refusal::NamespaceNotAllowed => Self::namespace_not_allowed(),
            Refusal::Frozen => Self::new(Code::Frozen, "The namespace is frozen. Ask an admin or operator to thaw it."),
            Refusal::NamespaceEmpty => {
                Self::new(Code::NotFound, "The namespace has no credentials. Names are compared exactly.")
            }
            Refusal::NamespaceTooLarge => {
                let detail = "The namespace has more than 100 credentials, so none was issued. Split it into several.";
                Self::new(Code::NamespaceTooLarge, detail)
            }
            Refusal::TooManyLive => Self::too_many_live(),
            Refusal::NotVended { credential, reason } => {
                let remedy = reason.remedy();
                Self::new(Code::Conflict, format!("No short-lived credential for {credential} ({reason}). {remedy}"))
            }
            Refusal::Contended => Self::unavailable(BUSY_RETRY),
            refusal => {
                debug_assert_eq!(refusal.kind(), ErrorKind::Damaged, "{refusal:?}");
                Self::internal().caused_by(Chain(&refusal))
            }
        }
    }
}

impl From<StoreError> for ProblemResponse {
    fn from(error: StoreError) -> Self {
        let problem_response = match error {
            StoreError::Denied(denial) => return denial.into(),
            StoreError::Unavailable(_) => Self::unavailable(STORE_RETRY),
            StoreError::Full => Self::unavailable(STORE_RETRY).saying(
                "The disk of the vault's database is full, so nothing can be saved or recorded in the audit log. Activations \
                 are refused too. Tell an operator.",
            ),
            _ => Self::internal(),
        };
        problem_response.caused_by(Chain(&error))
    }
}

impl From<SealError> for ProblemResponse {
    fn from(error: SealError) -> Self {
        match error {
            // The organization and its keys were deleted during the request.
            SealError::NoKeys => Self::invalid_token(),
            SealError::Store(error) => error.into(),
            error => Self::internal().caused_by(Chain(&error)),
        }
    }
}

impl From<HashError> for ProblemResponse {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::unavailable(BUSY_RETRY),
            HashError::NoMemory { .. } => Self::unavailable(STORE_RETRY).caused_by(Chain(&error)),
            error => Self::internal().caused_by(Chain(&error)),
        }
    }
}

/// Converts `text` to a sentence.
fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).chain(['.']).collect()
}

/// Formats an error with all its causes, for the log.
struct Chain<'a>(&'a dyn StdError);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            write!(f, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}
