//! Renewal of an activation while its command runs. Changed credentials are passed to the command's tools.

use super::args::ExecArgs;
use super::listener::{Listener, Received, Renewed};
use super::opened::Opened;
use super::supply::Supply;
use crate::failure::Failure;
use crate::output::warn;
use crate::text::rfc3339;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use vault_core::port::Clock;
use vault_core::time::Timestamp;

/// Maximum time before expiry at which a renewal starts, in milliseconds: 5 minutes.
const LONGEST_MARGIN: i64 = 300_000;
/// Fraction of the lifetime that remains when a renewal starts: a fifth.
const MARGIN_SHARE: i64 = 5;
/// Minimum interval of renewals in milliseconds.
const SHORTEST_TIME: i64 = 1_000;
/// First pause after a failed renewal. Each pause doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause after a failed renewal.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Maximum duration of one sleep, so that a host that was suspended continues by its wall clock.
const SLICE: Duration = Duration::from_secs(30);

/// An activation that is renewed until its command exits.
pub(crate) struct Renewal<'a> {
    args: &'a ExecArgs,
    base_path: Option<&'a str>,
    clock: Arc<dyn Clock>,
    activation: String,
    expires_at: Timestamp,
    /// Earliest expiry of the activation and its credentials.
    ends_at: Timestamp,
}

impl<'a> Renewal<'a> {
    /// Creates the renewal of a new activation, whose credentials are in `supply`.
    pub(crate) fn new(
        args: &'a ExecArgs,
        base_path: Option<&'a str>,
        clock: Arc<dyn Clock>,
        opened: &Opened,
        supply: &Supply,
    ) -> Self {
        let (activation, expires_at) = (opened.activation.clone(), opened.expires_at);
        Self { args, base_path, clock, activation, expires_at, ends_at: supply.ends_at(expires_at) }
    }

    /// Returns the current activation. It changes if the previous one could not be renewed.
    pub(crate) fn activation(&self) -> &str {
        &self.activation
    }

    /// Renews the activation when due, one request at a time, until this future is dropped.
    pub(crate) async fn keep(&mut self, supply: &mut Supply) -> Infallible {
        loop {
            self.sleep_until(due(self.clock.now(), self.ends_at)).await;
            let mut pause = FIRST_PAUSE;
            while let Err(failure) = self.renew(supply).await {
                if pause == FIRST_PAUSE {
                    let end = rfc3339(self.ends_at);
                    warn(&format!(
                        "{failure}\n  The command keeps its credentials until {end}; trying again until then and after"
                    ));
                }
                sleep(pause).await;
                pause = MAX_BACKOFF.min(pause * 2);
            }
            if pause > FIRST_PAUSE {
                warn(&format!(
                    "activation {} was renewed after all, until {}",
                    self.activation,
                    rfc3339(self.expires_at)
                ));
            }
        }
    }

    async fn sleep_until(&self, due: Timestamp) {
        while let Ok(left @ 1..) = u64::try_from(due.millis_since(self.clock.now())) {
            sleep(SLICE.min(Duration::from_millis(left))).await;
        }
    }

    async fn renew(&mut self, supply: &mut Supply) -> Result<(), Failure> {
        // Create a new client each time, because the token file may have changed.
        let listener = Arc::new(Listener::open(&self.args.listener, self.base_path)?);
        let (asking, activation) = (Arc::clone(&listener), self.activation.clone());
        let ttl = self.args.wanted.request().ttl;
        let answer = match spawn_blocking(move || asking.renew(&activation, ttl)).await?? {
            Renewed::Answer(answer) => answer,
            Renewed::Refused => self.begin_another(listener).await?,
        };
        let mut opened = Opened::read(answer)?;
        // If no credential matches any more, the command keeps the current one, and `supply` prints a warning.
        let _ = self.args.choice.narrow(&mut opened);
        (self.activation, self.expires_at) = (opened.activation.clone(), opened.expires_at);
        supply.take(&opened)?;
        self.ends_at = supply.ends_at(self.expires_at);
        Ok(())
    }

    /// Starts another activation to replace one that has ended or cannot be renewed.
    async fn begin_another(&self, listener: Arc<Listener>) -> Result<Received, Failure> {
        let (request, before) = (self.args.wanted.request(), self.activation.clone());
        let started = spawn_blocking(move || {
            let started = listener.activate(&request)?;
            // The previous activation may still be active. If ending it fails, it expires later.
            let _ = listener.end(&before);
            Ok::<_, Failure>(started)
        });
        started.await?
    }
}

/// Returns the time to renew a credential that was obtained at `now` and expires at `end`.
fn due(now: Timestamp, end: Timestamp) -> Timestamp {
    let time = end.millis_since(now).max(0);
    let margin = (time / MARGIN_SHARE).min(LONGEST_MARGIN);
    Timestamp::from_millis(now.as_millis().saturating_add((time - margin).max(SHORTEST_TIME)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn renewal_is_due_at_last_fifth_or_five_minutes() {
        let at = |seconds: i64| Timestamp::from_millis(1_000 * seconds);
        for (seconds, expected) in
            [(60, 48), (900, 720), (1_500, 1_200), (3_600, 3_300), (43_200, 42_900), (0, 1), (-9, 1)]
        {
            assert_eq!(due(at(0), at(seconds)), at(expected), "{seconds}");
        }
    }

    proptest! {
        #[test]
        fn retry_of_renewal_is_due_before_expiry(now in 0..1_i64 << 50, time in -10_000_i64..100_000_000) {
            let (now, end) = (Timestamp::from_millis(now), Timestamp::from_millis(now + time));
            let due = due(now, end);
            prop_assert!(due.millis_since(now) >= SHORTEST_TIME);
            prop_assert!(time <= 2 * SHORTEST_TIME || due < end);
        }
    }
}
