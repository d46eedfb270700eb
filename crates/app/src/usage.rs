//! Errors of the command line parser, in the style of all other errors.

use crate::command::target::server_only;
use crate::flag_error::{argument, violation};
use crate::{removed, settings};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Error};
use std::path::Path;
use vault_cli::failure::Failure;

/// Converts a parser error, unless it prints help. Names a flag without its value, which may be secret. The commands in
/// `without_vault` open no vault.
pub(crate) fn failure(error: &Error, without_vault: &[&str]) -> Option<Failure> {
    described(error, without_vault).map(Failure::usage).or_else(|| {
        let text = error.to_string();
        text.strip_prefix("error: ").map(|text| Failure::usage(text.trim_end()))
    })
}

fn described(error: &Error, without_vault: &[&str]) -> Option<String> {
    match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            Some(format!("{}: {}", argument(error)?, violation(error)))
        }
        ErrorKind::InvalidSubcommand => {
            let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
            removed::command(format!("{} {name}", rejecting(error)?).trim_start())
        }
        ErrorKind::UnknownArgument => {
            let (argument, command) = (argument(error)?, rejecting(error)?);
            if let Some(removed) = removed::flag(&command, &argument) {
                return Some(removed);
            }
            let group = command.split(' ').next().filter(|group| !group.is_empty());
            if argument == "--profile" && group.is_some_and(|group| !without_vault.contains(&group)) {
                return Some(server_only(&command, ""));
            }
            let known = settings::server_flags().iter().any(|flag| flag.get_long() == argument.strip_prefix("--"));
            known.then(|| format!("this command does not use {argument}, which is a setting of `orgvault serve`"))
        }
        _ => None,
    }
}

/// Returns the command that the parser rejected, such as `key status`. Empty for the program itself.
fn rejecting(error: &Error) -> Option<String> {
    let ContextValue::StyledStr(usage) = error.get(ContextKind::Usage)? else { return None };
    let usage = usage.to_string();
    let words = usage.split_whitespace().skip_while(|word| *word != "orgvault").skip(1);
    let is_name =
        |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-');
    Some(words.take_while(is_name).collect::<Vec<_>>().join(" "))
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
