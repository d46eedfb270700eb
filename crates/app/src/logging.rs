//! Log lines on standard error.

use crate::settings::{LogFormat, LogLevel};
use std::io::{self, IsTerminal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Sends the process's log to standard error: text on a terminal, else JSON.
pub(crate) fn start(format: Option<LogFormat>, level: LogLevel) {
    let terminal = io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let subscriber =
        tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).with_span_events(FmtSpan::NONE);
    match format {
        LogFormat::Text => subscriber.with_ansi(terminal).with_target(false).init(),
        LogFormat::Json => subscriber.json().flatten_event(true).with_current_span(false).init(),
    }
}
