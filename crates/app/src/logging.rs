//! The log on standard error.

use crate::settings::{LogFormat, LogLevel};
use crate::traces::Traces;
use std::io::{self, IsTerminal, Write as _};
use std::mem;
use std::sync::{Mutex, PoisonError};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The lines of the log that are written after the output of the command. `None` writes each line immediately.
static DELAYED: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Delays all lines of the log until [`resume`].
pub(crate) fn delay() {
    *DELAYED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// Writes the delayed lines. Later lines are written immediately.
pub(crate) fn resume() {
    let mut delayed = DELAYED.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = mem::take(&mut *delayed);
    let _ = io::stderr().write_all(&lines.unwrap_or_default()); // standard error may be closed
}

/// Standard error, or the delayed lines.
struct Lines;

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &mut *DELAYED.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(lines) => lines.write(line),
            None => io::stderr().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Writes the log to standard error, by default as text on a terminal and otherwise as JSON. Sends spans to `traces`.
pub(crate) fn start(format: Option<LogFormat>, level: LogLevel, traces: Option<&Traces>) {
    let terminal = io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    // Operators need only the warnings of libraries.
    let ours = ["orgvault", "vault_core", "vault_crypto", "vault_diesel", "vault_embed", "vault_http", "vault_storage"];
    let filter = Targets::new().with_default(level.min(LevelFilter::WARN)).with_targets(ours.map(|name| (name, level)));
    let lines = tracing_subscriber::fmt::layer().with_writer(|| Lines);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => lines.with_ansi(terminal).with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(traces.map(Traces::layer)).init();
}
