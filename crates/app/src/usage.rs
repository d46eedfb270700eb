//! Errors of the command line parser, in the style of all other errors.

use crate::command::target::server_only;
use crate::flag_error::{argument, violation};
use crate::settings;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Error};
use std::path::Path;
use vault_cli::failure::Failure;

/// Converts a parser error. Names the flag without its value, which may be secret. The commands in `without_vault` open no
/// vault.
pub(crate) fn failure(error: &Error, without_vault: &[&str]) -> Option<Failure> {
    match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            Some(Failure::usage(format!("{}: {}", argument(error)?, violation(error))))
        }
        ErrorKind::UnknownArgument => {
            let argument = argument(error)?;
            if let Some(command) = server_command(error, without_vault).filter(|_| argument == "--profile") {
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
fn server_command(error: &Error, without_vault: &[&str]) -> Option<String> {
    let ContextValue::StyledStr(usage) = error.get(ContextKind::Usage)? else { return None };
    let usage = usage.to_string();
    let words = usage.split_whitespace().skip_while(|word| *word != "orgvault").skip(1);
    let is_name =
        |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-');
    let command: Vec<&str> = words.take_while(is_name).collect();
    let first = command.first()?;
    (!without_vault.contains(first)).then(|| command.join(" "))
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
