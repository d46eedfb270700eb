//! How far a long command is: a bar on standard error where it is a terminal, else a line for each tenth.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::time::{Duration, Instant};

/// What is over sooner tells no lines.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// A bar of this template, of a length yet to be said; hidden where standard error is no terminal. It is cleared when it is
/// dropped.
pub(crate) fn bar(template: &str) -> Result<ProgressBar, Failure> {
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar.with_finish(ProgressFinish::AndClear))
}

/// How most bars look: a message, a share and the time left.
pub(crate) const SHARE: &str = "{bar:30} {percent}% {msg} {eta}";

/// The progress of one command.
pub(crate) struct Progress {
    bar: ProgressBar,
    doing: &'static str,
    began: Instant,
    told: Option<u64>,
}

impl Progress {
    /// The progress of `doing`.
    pub(crate) fn of(doing: &'static str) -> Result<Self, Failure> {
        let bar = bar(SHARE)?;
        bar.set_message(doing);
        Ok(Self { bar, doing, began: Instant::now(), told: None })
    }

    /// `done` of `total` steps are done.
    pub(crate) fn tell(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        let tenth = u64::try_from(u128::from(done) * 10 / u128::from(total.max(1))).unwrap_or_default();
        if self.bar.is_hidden() && self.told != Some(tenth) && self.began.elapsed() >= WORTH_TELLING {
            self.told = Some(tenth);
            tracing::info!("{}, {}% done", self.doing, tenth * 10);
        }
    }
}
