//! Progress of long commands: a bar on standard error if it is a terminal, otherwise a log line per tenth.

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::time::{Duration, Instant};
use vault_cli::failure::Failure;

/// Minimum duration before progress lines are logged.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// Creates a progress bar without a length. It is hidden if standard error is not a terminal, and cleared on drop.
pub(crate) fn bar(template: &str) -> Result<ProgressBar, Failure> {
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar.with_finish(ProgressFinish::AndClear))
}

/// Default template: percentage, message and remaining time.
pub(crate) const SHARE: &str = "{bar:30} {percent}% {msg} {eta}";

/// The progress of one command.
pub(crate) struct Progress {
    bar: ProgressBar,
    doing: &'static str,
    began: Instant,
    reported: Option<u64>,
}

impl Progress {
    /// Creates the progress of `doing`.
    pub(crate) fn of(doing: &'static str) -> Result<Self, Failure> {
        let bar = bar(SHARE)?;
        bar.set_message(doing);
        Ok(Self { bar, doing, began: Instant::now(), reported: None })
    }

    /// Reports that `done` of `total` steps are complete.
    pub(crate) fn tell(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        let tenth = u64::try_from(u128::from(done) * 10 / u128::from(total.max(1))).unwrap_or_default();
        if self.bar.is_hidden() && self.reported != Some(tenth) && self.began.elapsed() >= WORTH_TELLING {
            self.reported = Some(tenth);
            tracing::info!("{}, {}% done", self.doing, tenth * 10);
        }
    }
}
