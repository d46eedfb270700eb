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

/// The values that settings were given, by name, each with its source. The other settings have their defaults.
pub(super) struct Given(BTreeMap<String, (Vec<OsString>, String)>);

impl Given {
    /// Finds the value of each of `settings` in the source with the highest precedence.
    pub(super) fn find(settings: &[Arg], flags: &ArgMatches, file: Option<&SettingsFile>) -> Result<Self, Failure> {
        let found = settings.iter().map(|setting| Ok(Some(name(setting).to_owned()).zip(value(setting, flags, file)?)));
        Ok(Self(found.collect::<Result<Vec<_>, Failure>>()?.into_iter().flatten().collect()))
    }

    /// Returns the source of the setting `name`. `None` means that it has its default, rather than an equal value.
    pub(super) fn source(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|(_, source)| source.as_str())
    }

    /// Parses the values of `settings` with the flag parser, so that every source has the same syntax and errors.
    pub(super) fn parse(&self, settings: &[Arg]) -> Result<ArgMatches, Failure> {
        let given = settings.iter().filter_map(|setting| self.0.get_key_value(name(setting)));
        let words = given.flat_map(|(name, (values, _))| {
            values.iter().map(move |value| {
                [OsString::from(format!("--{name}=")), value.clone()].into_iter().collect::<OsString>()
            })
        });
        let parser = Command::new("settings").no_binary_name(true).disable_help_flag(true).args(settings);
        parser.try_get_matches_from(words).map_err(|error| {
            let name = long_name(&error).unwrap_or_default();
            Failure::usage(format!("{}: {}", self.source(&name).unwrap_or("settings"), violation(&error)))
        })
    }
}

/// Returns the value of a setting with its source, or `None` for the default.
fn value(
    setting: &Arg,
    flags: &ArgMatches,
    file: Option<&SettingsFile>,
) -> Result<Option<(Vec<OsString>, String)>, Failure> {
    let name = name(setting);
    if is_flag(setting, flags) {
        if is_secret(setting) {
            return Err(Failure::usage(format!(
                "--{name}: other users can see the arguments of commands. Set {} or {}, or {name} in the settings file",
                variable(name),
                file_variable(name)
            )));
        }
        let values = flags.get_raw(setting.get_id().as_str()).into_iter().flatten();
        return Ok(Some((values.map(OsStr::to_owned).collect(), format!("--{name}"))));
    }
    if let Some((value, source)) = from_environment(name)? {
        return Ok(Some((vec![value], source)));
    }
    let Some((file, (values, source))) = file.and_then(|file| Some((file, file.get(name)?))) else { return Ok(None) };
    if is_secret(setting) {
        file.require_private()?;
    }
    let values = match name {
        "root-key" => root_key::of_file(values, |path| file.resolve(path)),
        _ => values.iter().map(|value| resolved(file, setting, value)).collect(),
    };
    Ok(Some((values, source)))
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
