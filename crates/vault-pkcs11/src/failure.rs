//! Errors of tokens.

use cryptoki::error::{Error, RvError};
use std::error::Error as StdError;
use std::path::PathBuf;
use vault_core::port::KeyServiceError;

/// A token did not wrap or unwrap a key. The messages name module, token and key, never the PIN.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file is not a module, or other users can change it.
    #[error("PKCS#11 module {} {reason}", .path.display())]
    Module {
        /// Path of the module.
        path: PathBuf,
        /// Reason, as a verb phrase.
        reason: String,
    },
    /// No token matches the URI.
    #[error("no token matches {0}. Insert it, or check its label, serial number or slot")]
    NoToken(String),
    /// Several tokens match the URI.
    #[error("{1} tokens match {0}. Name one by its serial number")]
    SeveralTokens(String, usize),
    /// The token has no matching key.
    #[error("the token has no AES key that matches {0}. Check the key's id and label")]
    NoKey(String),
    /// The token has several matching keys.
    #[error("the token has {1} AES keys that match {0}. Give each key a separate ID")]
    SeveralKeys(String, usize),
    /// The PIN cannot be read from its file.
    #[error("PIN: {0}")]
    Pin(#[source] Box<dyn StdError + Send + Sync>),
    /// The PIN is wrong, expired or locked.
    #[error("the token rejects the PIN ({0}). It is not retried, because tokens lock after several wrong PINs")]
    WrongPin(&'static str),
    /// A function of the module failed.
    #[error("the token does not work: {call} returned {answer}")]
    Call {
        /// Name of the function.
        call: String,
        /// Its return code.
        answer: String,
        /// Set if a retry may succeed.
        again: bool,
    },
    /// The token did not respond in time.
    #[error("the token did not respond within {0} s")]
    Timeout(u64),
    /// The output of the token has an impossible length.
    #[error("the token returned an unexpected response")]
    Malformed,
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        let Error::Pkcs11(answer, function) = error else {
            return Self::Call { call: "the module".to_owned(), answer: error.to_string(), again: false };
        };
        match answer {
            RvError::PinIncorrect => Self::WrongPin("it is wrong"),
            RvError::PinInvalid | RvError::PinLenRange => Self::WrongPin("it cannot be one"),
            RvError::PinExpired => Self::WrongPin("it has expired"),
            RvError::PinLocked => Self::WrongPin("it is locked"),
            RvError::UserPinNotInitialized => Self::WrongPin("none was set"),
            answer => {
                Self::Call { call: format!("{function}"), answer: format!("{answer:?}"), again: is_passing(&answer) }
            }
        }
    }
}

/// Returns whether a retry may succeed, for example after the token is inserted again.
const fn is_passing(answer: &RvError) -> bool {
    matches!(
        answer,
        RvError::DeviceRemoved
            | RvError::DeviceError
            | RvError::DeviceMemory
            | RvError::HostMemory
            | RvError::TokenNotPresent
            | RvError::SlotIdInvalid
            | RvError::SessionClosed
            | RvError::SessionHandleInvalid
            | RvError::SessionCount
            | RvError::CryptokiNotInitialized
            | RvError::OperationActive
    )
}

impl From<TokenError> for KeyServiceError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::NoToken(_) | TokenError::Timeout(_) | TokenError::Call { again: true, .. } => {
                Self::Unavailable(error.into())
            }
            error => Self::Refused(error.into()),
        }
    }
}
