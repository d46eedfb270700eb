//! Database of a vault, and its files on disk before it is opened.

use crate::error::Error;
use secrecy::{ExposeSecret as _, SecretString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use vault_core::field::Invalid;

/// The database of a vault. Its `Display` form does not contain a user name, password or parameter.
#[derive(Clone, Debug)]
pub struct Database(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Absolute path, unless the working directory is unknown.
    Sqlite(PathBuf),
    Postgres(SecretString),
}

impl Database {
    /// Uses the embedded database file at `path`, which is encrypted completely. A relative path is relative to the
    /// current working directory.
    pub fn sqlite(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self(Kind::Sqlite(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())))
    }

    /// Uses a PostgreSQL server. For the format of `url`, see
    /// [`PostgresSettings::url`](vault_diesel::PostgresSettings::url).
    pub fn postgres(url: impl Into<SecretString>) -> Self {
        Self(Kind::Postgres(url.into()))
    }

    /// Returns the URL of a PostgreSQL server, if it contains no password.
    pub fn url_without_password(&self) -> Option<&str> {
        let Kind::Postgres(url) = &self.0 else { return None };
        let url = url.expose_secret(); // returned only without a password
        let (_, rest) = url.split_once("://")?;
        let (authority, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let user =
            authority.split_once('/').map_or(authority, |(hosts, _)| hosts).rsplit_once('@').map(|(user, _)| user);
        let has_password =
            user.is_some_and(|user| user.contains(':')) || parameters.to_ascii_lowercase().contains("password");
        (!has_password).then_some(url)
    }

    /// Returns the absolute path of the embedded database file.
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Sqlite(path) => Some(path),
            Kind::Postgres(_) => None,
        }
    }
}

impl FromStr for Database {
    type Err = Invalid;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        match url.split_once("://") {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::sqlite(path)),
            Some(("postgres" | "postgresql", _)) => Ok(Self::postgres(url)),
            _ => Err(Invalid("must be sqlite://PATH or postgres://…")),
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Kind::Postgres(url) => {
                let url = url.expose_secret(); // only the part after the password
                let place = url.split_once("://").map_or("", |(_, place)| place);
                let place = place.split(['?', '#']).next().unwrap_or("");
                write!(f, "postgres://{}", place.rsplit_once('@').map_or(place, |(_, place)| place))
            }
        }
    }
}

/// Files at the path of an embedded database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) state: FileState,
    /// Whether a database key file or a write-ahead log of the database exists.
    pub(crate) leftovers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    Missing,
    Empty,
    Present,
}

impl FoundFile {
    /// Inspects the files without opening them.
    pub(crate) fn at(database: &Path, key_file: &Path) -> Result<Self, Error> {
        let state = match look(database)? {
            None => FileState::Missing,
            Some(0) => FileState::Empty,
            Some(_) => FileState::Present,
        };
        let log = with_suffix(database, "-wal");
        Ok(Self { state, leftovers: look(key_file)?.is_some() || look(&log)?.is_some() })
    }
}

/// Returns the length of the file at `path`, following links. A dangling link counts as an existing file.
fn look(path: &Path) -> Result<Option<u64>, Error> {
    match path.metadata() {
        Ok(found) => Ok(Some(found.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => exists(path).map(|exists| exists.then_some(u64::MAX)),
        Err(source) => Err(Error::Unreadable { path: path.to_owned(), source }),
    }
}

/// Returns whether anything exists at `path`, including a dangling link.
pub(crate) fn exists(path: &Path) -> Result<bool, Error> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Unreadable { path: path.to_owned(), source }),
    }
}

/// Returns `path` with `suffix` appended to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn url_with_password_is_not_issued() {
        let shown = |url: &str| url.parse::<Database>().unwrap().url_without_password().map(str::to_owned);
        for url in [
            "postgres://localhost/vault",
            "postgres://orgvault@db-1:5432,db-2/vault?sslmode=verify-full",
            "postgres:///vault?host=/run/postgresql&user=orgvault",
            "postgresql://db/vault:1",
        ] {
            assert_eq!(shown(url).as_deref(), Some(url));
        }
        for url in [
            "postgres://orgvault:secret@localhost/vault",
            "postgres://a:b@c@localhost/vault",
            "postgres://:@localhost",
            "postgres:///vault?user=orgvault&password=secret",
            "postgres:///vault?Password=secret",
            "postgres:///vault?sslpassword=secret",
        ] {
            assert_eq!(shown(url), None, "{url}");
        }
        assert_eq!(shown("sqlite:///var/lib/orgvault/orgvault.db"), None);
    }
}
