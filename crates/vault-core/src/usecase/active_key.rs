//! Sealing and signing under the instance key that is active, and verifying under those that there are.

use super::Environment;
use crate::error::{Error, Refusal};
use crate::port::{Event, KeyedDigester, RetryReason, SealError};

/// How often something is sealed again because the instance key was replaced meanwhile.
const ATTEMPTS: usize = 5;

/// Carries out what seals or signs under the active instance key: again, with the keys that there are now, as long as the
/// store refuses it as [`Refusal::Contended`]. Nothing was changed then.
///
/// # Errors
/// [`Refusal::Contended`] after some attempts; those of `act`.
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

/// Whether something is sound. What is not may be under a key that is new: the keys are read again before it counts as damaged.
///
/// # Errors
/// The keys cannot be read.
pub(crate) async fn sound_under_known_keys(
    keys: &dyn KeyedDigester,
    is_sound: impl Fn() -> bool,
) -> Result<bool, SealError> {
    if is_sound() {
        return Ok(true);
    }
    keys.refresh().await?;
    Ok(is_sound())
}
