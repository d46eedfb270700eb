//! Sources of settings, in order of precedence: flags, environment, settings file, defaults.

use super::file::SettingsFile;
use super::root_key;
use crate::flag_error::{long_name, violation};
use crate::removed;
use clap::builder::ValueHint;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use vault_cli::failure::Failure;
use vault_crypto::SecretFile;

/// Maximum size of a file with the value of a setting, in bytes.
const MAX_FILE: usize = 64 * 1024;

/// Returns the environment variable of the setting `name`.
pub(super) fn variable(name: &str) -> String {
    format!("ORGVAULT_{}", name.replace('-', "_").to_uppercase())
}

/// Returns the name of a setting, which is that of its flag.
pub(super) fn name(setting: &Arg) -> &str {
    setting.get_long().unwrap_or_default()
}

/// Returns the matches of the innermost subcommand.
pub(crate) fn innermost(mut matches: &ArgMatches) -> &ArgMatches {
    while let Some((_, below)) = matches.subcommand() {
        matches = below;
    }
    matches
}

/// Returns whether `setting` was given as a flag.
pub(super) fn is_flag(setting: &Arg, matches: &ArgMatches) -> bool {
    let id = setting.get_id().as_str();
    matches.ids().any(|known| known == id) && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns whether `setting` is a secret, which is not accepted as a flag.
pub(super) fn is_secret(setting: &Arg) -> bool {
    setting.is_hide_set()
}

/// Returns the environment variable that names a file with the value of the setting `name`.
pub(super) fn file_variable(name: &str) -> String {
    format!("{}_FILE", variable(name))
}

/// Returns the value of the setting `name` from its environment variable or from the file that the other variable names.
fn from_environment(name: &str) -> Result<Option<(OsString, String)>, Failure> {
    let (variable, in_file) = (variable(name), file_variable(name));
    match (std::env::var_os(&variable), std::env::var_os(&in_file)) {
        (Some(_), Some(_)) => Err(Failure::usage(format!("{variable} and {in_file} are both set. Unset one of them"))),
        (Some(value), None) => Ok(Some((value, variable))),
        (None, None) => Ok(None),
        (None, Some(path)) => {
            let read = SecretFile::open(Path::new(&path)).and_then(|file| file.read(MAX_FILE));
            let text = read.map_err(|error| Failure::new(format!("{in_file}: {error}")))?;
            let line = text.strip_suffix(b"\n").unwrap_or(&text);
            Ok(Some((OsStr::from_bytes(line).to_owned(), in_file)))
        }
    }
}

/// Returns the values of `settings`, each from the source with the highest precedence.
///
/// The flag parser parses all values, so that every source has the same syntax and errors.
pub(super) fn resolve(
    settings: &[Arg],
    flags: &ArgMatches,
    file: Option<&SettingsFile>,
) -> Result<ArgMatches, Failure> {
    let mut words: Vec<OsString> = Vec::new();
    let mut places = BTreeMap::new();
    for setting in settings {
        let name = name(setting);
        let (values, place): (Vec<OsString>, String) = if is_flag(setting, flags) {
            if is_secret(setting) {
                return Err(Failure::usage(format!(
                    "--{name}: other users can see the arguments of commands. Set {} or {}, or {name} in the settings file",
                    variable(name),
                    file_variable(name)
                )));
            }
            let values = flags.get_raw(setting.get_id().as_str()).into_iter().flatten();
            (values.map(OsStr::to_owned).collect(), format!("--{name}"))
        } else if let Some((value, place)) = from_environment(name)? {
            (vec![value], place)
        } else if let Some((file, (values, place))) = file.and_then(|file| Some((file, file.get(name)?))) {
            if is_secret(setting) {
                file.require_private()?;
            }
            let values = match name {
                "root-key" => root_key::of_file(values, |path| file.resolve(path)),
                _ => values.iter().map(|value| resolved(file, setting, value)).collect(),
            };
            (values, place)
        } else {
            continue;
        };
        for value in values {
            let mut word = OsString::from(format!("--{name}="));
            word.push(value);
            words.push(word);
        }
        places.insert(name, place);
    }
    let command = Command::new("settings").no_binary_name(true).disable_help_flag(true).args(settings.iter().cloned());
    command.try_get_matches_from(words).map_err(|error| {
        let place = long_name(&error).and_then(|name| places.get(name.as_str()).cloned());
        Failure::usage(format!("{}: {}", place.unwrap_or_else(|| "settings".to_owned()), violation(&error)))
    })
}

/// Converts a value of the file. Paths are relative to the directory of the file.
fn resolved(file: &SettingsFile, setting: &Arg, value: &str) -> OsString {
    if setting.get_value_hint() == ValueHint::AnyPath {
        return file.resolve(value).into_os_string();
    }
    for scheme in ["unix:", "sqlite://"] {
        if let Some(path) = value.strip_prefix(scheme).filter(|path| !path.is_empty()) {
            let mut url = OsString::from(scheme);
            url.push(file.resolve(path));
            return url;
        }
    }
    value.into()
}

/// Returns environment variables with the prefix `ORGVAULT_` that are not in `known`. Rejects those of removed settings.
pub(super) fn unknown_variables(known: &[String]) -> Result<Vec<String>, Failure> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> =
        names.filter(|name| name.starts_with("ORGVAULT_") && !known.contains(name)).collect();
    unknown.sort();
    match unknown.iter().find_map(|name| removed::variable(name)) {
        Some(removed) => Err(Failure::usage(removed)),
        None => Ok(unknown),
    }
}
