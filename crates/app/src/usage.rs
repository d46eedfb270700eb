//! Errors of the command line parser, in the style of all other errors.

use crate::cli;
use crate::command::target::server_only;
use crate::settings;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Error};
use std::error::Error as _;
use std::path::Path;
use vault_cli::failure::Failure;

/// Converts a parser error. Names the flag without its value, which may be secret.
pub(crate) fn failure(error: &Error) -> Option<Failure> {
    match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            Some(Failure::usage(format!("{}: {}", argument(error)?, violation(error))))
        }
        ErrorKind::UnknownArgument => {
            let argument = argument(error)?;
            if let Some(command) = server_command(error).filter(|_| argument == "--profile") {
                return Some(server_only(&command, ""));
            }
            let known = settings::server_flags().iter().any(|flag| flag.get_long() == argument.strip_prefix("--"));
            known.then(|| {
                Failure::usage(format!("this command does not use {argument}, which is a setting of `orgvault serve`"))
            })
        }
        _ => None,
    }
}

/// Returns the command that the parser rejected, such as `key status`, if it opens the vault.
fn server_command(error: &Error) -> Option<String> {
    let ContextValue::StyledStr(usage) = error.get(ContextKind::Usage)? else { return None };
    let usage = usage.to_string();
    let words = usage.split_whitespace().skip_while(|word| *word != "orgvault").skip(1);
    let is_name =
        |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-');
    let command: Vec<&str> = words.take_while(is_name).collect();
    let first = command.first()?;
    (!cli::WITHOUT_VAULT.contains(first)).then(|| command.join(" "))
}

/// Rejects a `--namespace` with several values that are all files, because the shell has expanded an unquoted pattern.
pub(crate) fn check_patterns(matches: &ArgMatches) -> Result<(), Failure> {
    let given = matches.try_get_occurrences::<String>("namespace").ok().flatten();
    for values in given.into_iter().flatten() {
        let values: Vec<&str> = values.map(String::as_str).collect();
        if values.len() > 1 && values.iter().all(|value| Path::new(value).exists()) {
            return Err(Failure::usage(format!(
                "--namespace {}: these are files, so the shell may have replaced a pattern by them. Quote patterns: \
                 --namespace 'imports/*'. If the names are meant, repeat --namespace for each",
                values.join(" ")
            )));
        }
    }
    Ok(())
}

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
fn argument(error: &Error) -> Option<String> {
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
