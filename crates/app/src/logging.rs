//! The log on standard error.

use crate::settings::{LogFormat, LogLevel};
use crate::traces::Traces;
use std::io::{self, IsTerminal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

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
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => lines.with_ansi(terminal).with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(traces.map(Traces::layer)).init();
}
