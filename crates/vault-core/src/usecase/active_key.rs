//! Encryption and signing with the active instance key, and verification with all existing ones.

use super::Environment;
use crate::error::{Error, Refusal};
use crate::port::{Event, KeyedDigester, RetryReason};

/// Maximum number of attempts if the instance key is replaced concurrently.
const ATTEMPTS: usize = 5;

/// Runs an operation that seals or signs with the active instance key. Reloads the keys and repeats it while the store
/// refuses it with [`Refusal::Contended`], in which case nothing was changed.
///
/// # Errors
/// [`Refusal::Contended`] after the last attempt, and the errors of `act`.
pub(crate) async fn under_active_key<T, F: Future<Output = Result<T, Error>>>(
    environment: &Environment,
    keys: &dyn KeyedDigester,
    act: impl Fn() -> F,
) -> Result<T, Error> {
    for _ in 1..ATTEMPTS {
        match act().await {
            Err(Error::Refused(Refusal::Contended)) => {
                environment.emit(Event::Retried(RetryReason::KeyReplaced));
                keys.reload_keys().await?;
            }
            outcome => return outcome,
        }
    }
    act().await
}
