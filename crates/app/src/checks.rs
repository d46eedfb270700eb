//! Background checks of saved credentials at their storage, in the process with the activation listener. Only this
//! process can decrypt them.

use crate::settings::ServerSettings;
use std::error::Error;
use std::time::Duration;
use tokio::task::JoinHandle;
use vault_core::usecase::Activations;

/// Interval of searching for due checks, and the maximum delay of a requested check.
const EVERY: Duration = Duration::from_secs(1);
/// Pause after a failure of the database.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// Maximum number of periodic checks per round, which spreads them over time.
const AT_A_TIME: usize = 8;

/// Starts requested checks and, if the settings enable them, periodic ones.
pub(crate) fn start(settings: &ServerSettings, activations: Activations) -> JoinHandle<()> {
    let turn = settings.recheck_every.map(|seconds| (AT_A_TIME, seconds));
    tokio::spawn(check(activations, turn))
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
