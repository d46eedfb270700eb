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
use vault_cli::failure::Failure;

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
    is_id_flag(setting.get_id().as_str(), matches)
}

fn is_id_flag(id: &str, matches: &ArgMatches) -> bool {
    matches.ids().any(|known| known == id) && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Settings that name the same object in two ways.
const ALTERNATIVES: [[&str; 2]; 1] = [["database_url", "database_url_file"]];

/// Returns whether a flag names the object of `setting`, which is not a flag, in the other way.
fn is_overridden(setting: &Arg, matches: &ArgMatches) -> bool {
    let id = setting.get_id().as_str();
    let mut others = ALTERNATIVES.iter().filter(|pair| pair.contains(&id)).flatten().filter(|other| **other != id);
    !is_id_flag(id, matches) && others.any(|other| is_id_flag(other, matches))
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
        let variable = variable(name);
        let (values, place): (Vec<OsString>, String) = if is_flag(setting, flags) {
            let values = flags.get_raw(setting.get_id().as_str()).into_iter().flatten();
            (values.map(OsStr::to_owned).collect(), format!("--{name}"))
        } else if is_overridden(setting, flags) {
            continue;
        } else if let Some(value) = std::env::var_os(&variable) {
            (vec![value], variable)
        } else if let Some((file, (values, place))) = file.and_then(|file| Some((file, file.get(name)?))) {
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
