//! Saved credentials checked at their storages, in the background of the process with the activation listener: the one that can
//! open them.

use crate::settings::ServerSettings;
use std::error::Error;
use std::time::Duration;
use tokio::task::JoinHandle;
use vault_core::usecase::Activations;

/// How often what is due is looked for: a check that is asked for begins within this time.
const EVERY: Duration = Duration::from_secs(1);
/// How long a failure of the store is left alone.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// The most credentials that are taken in their turn at a time, so that a round is spread.
const AT_A_TIME: usize = 8;

/// Begins to check, if the settings ask for it.
pub(crate) fn start(settings: &ServerSettings, activations: Activations) -> Option<JoinHandle<()>> {
    let turn = settings.recheck_every.map(|seconds| (AT_A_TIME, seconds));
    settings.checks_on_request().then(|| tokio::spawn(check(activations, turn)))
}

async fn check(activations: Activations, turn: Option<(usize, i64)>) {
    loop {
        let wait = match activations.check_due(turn).await {
            Ok(_) => EVERY,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "saved credentials were not checked; the next attempt is in seconds"
                );
                AFTER_FAILURE
            }
        };
        tokio::time::sleep(wait).await;
    }
}
