//! The settings file: TOML, with the names of settings as keys.

use crate::owner;
use crate::removed;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use vault_cli::failure::Failure;
use vault_crypto::SecretFile;

/// Maximum size of a settings file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A parsed settings file.
pub(super) struct SettingsFile {
    path: PathBuf,
    entries: Vec<Entry>,
}

/// A key and its values. A list has several.
struct Entry {
    key: String,
    line: usize,
    values: Vec<String>,
}

impl SettingsFile {
    /// Reads the file at `path`. Rejects keys that are not among `known`.
    pub(super) fn read(path: &Path, known: &[&str]) -> Result<Self, Failure> {
        let unreadable = |error| Failure::usage(format!("cannot read the settings file {}: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        owner::check(path, &file.metadata().map_err(unreadable)?)?;
        let mut text = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut text).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = |span: Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
        let mut file = Self { path: path.to_owned(), entries: Vec::new() };
        // Report only the parser's message. The full error repeats the line, which may contain a password.
        let table = DeTable::parse(&text).map_err(|error| {
            let place = file.place(error.span().map_or(1, line), None);
            Failure::usage(format!("{place}: not valid TOML: {}", error.message()))
        })?;
        for (key, value) in table.into_inner() {
            let line = line(key.span());
            let key = key.into_inner().into_owned();
            let place = file.place(line, Some(&key));
            if !known.contains(&key.as_str()) {
                let hint = || "unknown setting; `orgvault help settings` lists all".to_owned();
                return Err(Failure::usage(format!("{place}: {}", removed::key(&key).unwrap_or_else(hint))));
            }
            let values = values(value.into_inner()).ok_or_else(|| {
                Failure::usage(format!("{place}: must be text, a number, true or false, or a list of these"))
            })?;
            file.entries.push(Entry { key, line, values });
        }
        Ok(file)
    }

    /// Rejects a file that other users can read, because it contains a secret.
    pub(super) fn require_private(&self) -> Result<(), Failure> {
        let read = SecretFile::open(&self.path).and_then(|file| file.read(1 << 20));
        read.map(drop).map_err(|error| Failure::usage(format!("the settings file contains a secret: {error}")))
    }

    /// Returns the values of `key` and their position for error messages, or `None` if the file does not contain the
    /// key.
    pub(super) fn get(&self, key: &str) -> Option<(&[String], String)> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some((&entry.values, self.place(entry.line, Some(key)).to_string()))
    }

    /// Resolves `path` relative to the directory of the file.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new(".")).join(path)
    }

    fn place<'a>(&'a self, line: usize, key: Option<&'a str>) -> FilePosition<'a> {
        FilePosition { path: &self.path, line, key }
    }
}

/// A position in the settings file.
struct FilePosition<'a> {
    path: &'a Path,
    line: usize,
    key: Option<&'a str>,
}

impl fmt::Display for FilePosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.path.display(), self.line)?;
        self.key.map_or(Ok(()), |key| write!(f, ", {key}"))
    }
}

/// Converts a value to the form of a flag, or returns `None` if no flag has such values.
fn values(value: DeValue<'_>) -> Option<Vec<String>> {
    let several = |value: Spanned<DeValue<'_>>| match value.into_inner() {
        DeValue::Array(_) => None,
        value => values(value)?.pop(),
    };
    match value {
        DeValue::Array(values) => values.into_iter().map(several).collect(),
        DeValue::String(text) => Some(vec![text.into_owned()]),
        DeValue::Integer(number) if number.radix() == 10 => Some(vec![number.as_str().to_owned()]),
        DeValue::Boolean(value) => Some(vec![value.to_string()]),
        _ => None,
    }
}
