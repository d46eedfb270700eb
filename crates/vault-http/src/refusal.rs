//! From the errors of use cases to faults: which status each has.

mod account;
mod activation;
mod integration;

pub(crate) use account::email_flaw;

use crate::fault::Fault;
use crate::query::verify_unavailable;
use std::error::Error;
use std::fmt;
use vault_api::ProblemCode;
use vault_core::field::{FieldCode, FieldError};
use vault_core::port::{HashError, SealError, StoreError};
use vault_core::usecase::{DeleteCredentialError, LogInError, LogOutError, ProofError, ReadError, SaveCredentialError};

/// Seconds after which an overload may have passed.
const BUSY_RETRY: u32 = 1;
/// Seconds after which a store that was away may be back.
const STORE_RETRY: u32 = 5;

impl From<LogInError> for Fault {
    fn from(error: LogInError) -> Self {
        match error {
            LogInError::Ttl(error) => Self::fields(vec![error]),
            LogInError::Proof(error) => error.into(),
            LogInError::Seal(error) => error.into(),
        }
    }
}

impl From<ProofError> for Fault {
    fn from(error: ProofError) -> Self {
        match error {
            ProofError::Invalid => Self::invalid_login(),
            ProofError::Principal(_) => Self::invalid_token(),
            ProofError::Hash(error) => error.into(),
            ProofError::Store(error) => error.into(),
            ProofError::Seal(error) => error.into(),
        }
    }
}

impl From<SaveCredentialError> for Fault {
    fn from(error: SaveCredentialError) -> Self {
        match error {
            SaveCredentialError::InsufficientRole => Self::insufficient_role(),
            SaveCredentialError::Principal(_) => Self::invalid_token(),
            SaveCredentialError::VerifyUnavailable => Self::fields(vec![verify_unavailable()]),
            SaveCredentialError::NotUsable(report) => Self::not_usable(&report),
            SaveCredentialError::IdempotencyMismatch => {
                Self::new(ProblemCode::IdempotencyMismatch, "Use a new key for a new request.")
            }
            SaveCredentialError::LimitReached => {
                Self::new(ProblemCode::LimitReached, "The organization has as many credentials as it may. Delete some.")
            }
            SaveCredentialError::Store(error) => error.into(),
            SaveCredentialError::Seal(error) => error.into(),
        }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::InsufficientRole => Self::insufficient_role(),
            ReadError::Principal(_) => Self::invalid_token(),
            ReadError::Cursor(_) => {
                let detail = "must be the one of the `Link` header of the page before, with the same filters";
                Self::fields(vec![FieldError::new("/cursor", FieldCode::Malformed, detail)])
            }
            ReadError::NotFound => Self::not_found(),
            ReadError::Store(error) => error.into(),
            ReadError::Seal(error) => error.into(),
        }
    }
}

impl From<DeleteCredentialError> for Fault {
    fn from(error: DeleteCredentialError) -> Self {
        match error {
            DeleteCredentialError::InsufficientRole => Self::insufficient_role(),
            DeleteCredentialError::Principal(_) => Self::invalid_token(),
            DeleteCredentialError::NotFound => Self::not_found(),
            DeleteCredentialError::Store(error) => error.into(),
        }
    }
}

impl From<LogOutError> for Fault {
    fn from(error: LogOutError) -> Self {
        match error {
            LogOutError::Principal(_) => Self::invalid_token(),
            LogOutError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let fault = match error {
            StoreError::Unavailable(_) => Self::unavailable(STORE_RETRY),
            _ => Self::internal(),
        };
        fault.caused_by(Chain(&error))
    }
}

impl From<SealError> for Fault {
    fn from(error: SealError) -> Self {
        match error {
            // The organization went away with its keys while the token was on its way.
            SealError::NoKeys => Self::invalid_token(),
            SealError::Store(error) => error.into(),
            error => Self::internal().caused_by(Chain(&error)),
        }
    }
}

impl From<HashError> for Fault {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::unavailable(BUSY_RETRY),
            error => Self::internal().caused_by(Chain(&error)),
        }
    }
}

/// An error and all of its causes, for the log.
struct Chain<'a>(&'a dyn Error);

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
