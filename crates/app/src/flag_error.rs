//! Descriptions of errors of the command line parser, for one flag.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;

/// Returns why a value is invalid.
pub(crate) fn violation(error: &Error) -> String {
    if let Some(violation) = error.source() {
        return violation.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) if !valid.is_empty() => format!("must be one of {}", valid.join(", ")),
        _ if error.kind() == ErrorKind::InvalidValue => "needs a value".to_owned(),
        _ if error.kind() == ErrorKind::ArgumentConflict => "accepts one value".to_owned(),
        kind => format!("cannot be used: {kind:?}"),
    }
}

/// Returns the long name of the flag, without dashes.
pub(crate) fn long_name(error: &Error) -> Option<String> {
    argument(error)?.strip_prefix("--").map(str::to_owned)
}

/// Returns the flag or positional argument, without the name of its value.
pub(crate) fn argument(error: &Error) -> Option<String> {
    let shown = text(error, ContextKind::InvalidArg)?;
    Some(shown.split([' ', '=', '[']).next().unwrap_or(&shown).to_owned())
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}
