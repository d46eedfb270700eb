//! Why a token did not seal or open.

use cryptoki::error::{Error, RvError};
use std::error::Error as StdError;
use std::path::PathBuf;
use vault_core::port::KeyServiceError;

/// A token did not seal or open. The texts name module, token and key, never the PIN.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file is not a module that can be trusted or loaded.
    #[error("PKCS#11 module {} {reason}", .path.display())]
    Module {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No token of this name is there.
    #[error("no token matches {0}. Insert it, or check its label, serial number or slot")]
    NoToken(String),
    /// Several tokens of this name are there.
    #[error("{1} tokens match {0}. Name one by its serial number")]
    SeveralTokens(String, usize),
    /// The token has no such key.
    #[error("the token has no AES key that matches {0}. Check the key's id and label")]
    NoKey(String),
    /// The token has several such keys.
    #[error("the token has {1} AES keys that match {0}. Give each key a separate ID")]
    SeveralKeys(String, usize),
    /// The file of the PIN is refused.
    #[error("PIN: {0}")]
    Pin(#[source] Box<dyn StdError + Send + Sync>),
    /// The PIN is wrong, expired or locked.
    #[error("the token rejects the PIN ({0}). It is not retried, because tokens lock after several wrong PINs")]
    WrongPin(&'static str),
    /// A call failed.
    #[error("the token does not work: {call} returned {answer}")]
    Call {
        /// The function.
        call: String,
        /// Its answer.
        answer: String,
        /// Whether a later try may succeed.
        again: bool,
    },
    /// It did not answer in time.
    #[error("the token did not respond within {0} s")]
    Timeout(u64),
    /// What it gave cannot be what was asked for.
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

/// Whether the token may be there again later.
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
