//! The errors of what is done with accounts.

use super::{BUSY_RETRY, Chain};
use crate::fault::Fault;
use vault_core::email::InvalidEmailAddress;
use vault_core::field::{FieldCode, FieldError};
use vault_core::password::PasswordFlaw;
use vault_core::usecase::{
    ChangeAccountError, ChangePasswordError, ConfirmEnrolmentError, ConfirmPasscodeError, EnrolError, InviteError,
    ListAccountsError, OwnAccountError,
};

impl From<ListAccountsError> for Fault {
    fn from(error: ListAccountsError) -> Self {
        match error {
            ListAccountsError::InsufficientRole => Self::insufficient_role(),
            ListAccountsError::Principal(_) => Self::invalid_token(),
            ListAccountsError::Store(error) => error.into(),
        }
    }
}

impl From<InviteError> for Fault {
    fn from(error: InviteError) -> Self {
        match error {
            InviteError::InsufficientRole => Self::insufficient_role(),
            // The organization went away while the token was on its way.
            InviteError::Principal(_) | InviteError::NoOrganization => Self::invalid_token(),
            InviteError::Email(error) => Self::fields(vec![email_flaw(error)]),
            InviteError::AddressTaken => Self::conflict("This address has an account or an invitation already."),
            InviteError::Entropy(error) => Self::internal().caused_by(Chain(&error)),
            InviteError::Store(error) => error.into(),
        }
    }
}

impl From<ChangeAccountError> for Fault {
    fn from(error: ChangeAccountError) -> Self {
        match error {
            ChangeAccountError::InsufficientRole => Self::insufficient_role(),
            ChangeAccountError::Principal(_) => Self::invalid_token(),
            ChangeAccountError::Email(error) => Self::fields(vec![email_flaw(error)]),
            ChangeAccountError::NotFound => Self::not_found(),
            ChangeAccountError::OnlyInvited => {
                Self::conflict("The account is only invited: until it is enrolled, only its role can be changed.")
            }
            ChangeAccountError::LastAdmin => Self::conflict(
                "This is the organization's last active admin, who cannot be lowered, disabled or deleted.",
            ),
            ChangeAccountError::Contended => Self::unavailable(BUSY_RETRY),
            ChangeAccountError::Password(flaw) => Self::fields(vec![password_flaw("/password", flaw)]),
            ChangeAccountError::Hash(error) => error.into(),
            ChangeAccountError::Seal(error) => error.into(),
            ChangeAccountError::Store(error) => error.into(),
            ChangeAccountError::Damaged => Self::internal().caused_by(Chain(&error)),
        }
    }
}

impl From<EnrolError> for Fault {
    fn from(error: EnrolError) -> Self {
        match error {
            EnrolError::InvalidEnrolment => Self::invalid_enrolment(),
            EnrolError::Password(flaw) => Self::fields(vec![password_flaw("/password", flaw)]),
            EnrolError::Hash(error) => error.into(),
            EnrolError::Seal(error) => error.into(),
            EnrolError::Store(error) => error.into(),
        }
    }
}

impl From<ConfirmEnrolmentError> for Fault {
    fn from(error: ConfirmEnrolmentError) -> Self {
        match error {
            ConfirmEnrolmentError::InvalidEnrolment | ConfirmEnrolmentError::WrongPasscode => Self::invalid_enrolment(),
            ConfirmEnrolmentError::Seal(error) => error.into(),
            ConfirmEnrolmentError::Store(error) => error.into(),
        }
    }
}

impl From<OwnAccountError> for Fault {
    fn from(error: OwnAccountError) -> Self {
        match error {
            OwnAccountError::Principal(_) => Self::invalid_token(),
            OwnAccountError::NotFound => Self::not_found(),
            OwnAccountError::Store(error) => error.into(),
        }
    }
}

impl From<ChangePasswordError> for Fault {
    fn from(error: ChangePasswordError) -> Self {
        match error {
            ChangePasswordError::Password(flaw) => Self::fields(vec![password_flaw("/new_password", flaw)]),
            ChangePasswordError::Proof(error) => error.into(),
        }
    }
}

impl From<ConfirmPasscodeError> for Fault {
    fn from(error: ConfirmPasscodeError) -> Self {
        match error {
            ConfirmPasscodeError::NothingPending => {
                Self::conflict("No new passcode waits to be confirmed. Ask for one first; it waits for an hour.")
            }
            ConfirmPasscodeError::Invalid => Self::invalid_login(),
            ConfirmPasscodeError::Principal(_) => Self::invalid_token(),
            ConfirmPasscodeError::Seal(error) => error.into(),
            ConfirmPasscodeError::Store(error) => error.into(),
        }
    }
}

/// What is wrong with the address `/email`.
pub(crate) fn email_flaw(error: InvalidEmailAddress) -> FieldError {
    FieldError::new("/email", FieldCode::Malformed, error.to_string())
}

fn password_flaw(pointer: &'static str, flaw: PasswordFlaw) -> FieldError {
    let code = match flaw {
        PasswordFlaw::TooShort => FieldCode::OutOfRange,
        PasswordFlaw::TooLong => FieldCode::TooLong,
        PasswordFlaw::Common | PasswordFlaw::Guessable => FieldCode::NotAllowed,
    };
    FieldError::new(pointer, code, flaw.to_string())
}
