//! Reads and decrypts rows, and repeats this once if a key rotation ended in between.

use crate::error::Error;
use crate::port::SealError;

/// Whether rows are read for the first time. A rotation may end between reading a row and reading the keys. If the row
/// is read again, it names the new key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    First,
    Again,
}

impl Reading {
    /// Runs an operation that reads and decrypts rows, and repeats it once if a row named an unknown key.
    pub(super) async fn run<T, F: Future<Output = Result<T, Error>>>(
        operation: impl Fn(Self) -> F,
    ) -> Result<T, Error> {
        match operation(Self::First).await {
            Err(error) if error.is_unknown_key() => operation(Self::Again).await,
            done => done,
        }
    }

    /// Returns whether the row is to be read again.
    pub(super) const fn is_to_repeat(self, error: &SealError) -> bool {
        matches!((self, error), (Self::First, SealError::UnknownKey { .. }))
    }

    /// Returns the decrypted values, unless the rows are to be read again.
    pub(super) fn check<T>(self, opened: Vec<Result<T, SealError>>) -> Result<Vec<Result<T, SealError>>, SealError> {
        let repeated = |one: &Result<T, SealError>| one.as_ref().is_err_and(|error| self.is_to_repeat(error));
        if opened.iter().any(repeated) {
            let found = opened.into_iter().find(repeated).and_then(Result::err);
            return Err(found.unwrap_or(SealError::NoKeys));
        }
        Ok(opened)
    }
}
