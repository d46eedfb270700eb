//! Stored logins of this user: server URL, e-mail address and access token.

use super::data::printable;
use crate::failure::{Failure, flag_of, rejected};
use crate::secret_file;
use secrecy::zeroize::Zeroizing;
use serde::{Deserialize, Serialize};
use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use vault_client::{Client, ClientError, ClientSettings, ProblemCode, ServerSocket, Session, WireSecret};

/// Maximum size of a login file in bytes.
const MAX_FILE: usize = 16 * 1024;

/// Maximum length of a profile name in characters.
const MAX_PROFILE: usize = 64;

/// The name of a stored login. A user can have several, for example one per server and account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Profile(String);

impl Profile {
    /// The default profile.
    pub const DEFAULT: &str = "default";

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the command that logs in to this profile.
    pub fn login_command(&self) -> String {
        if self.0 == Self::DEFAULT {
            "orgvault login".to_owned()
        } else {
            format!("orgvault login --profile {}", self.0)
        }
    }

    /// Returns all profiles with a stored login, sorted by name.
    pub fn all() -> Result<Vec<Self>, Failure> {
        let directory = directory()?;
        let failed = |error: std::io::Error| Failure::new(format!("cannot read {}: {error}", directory.display()));
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".json"));
            found.extend(name.and_then(|name| name.parse().ok()));
        }
        found.sort();
        Ok(found)
    }

    /// Returns whether this user has a directory for profiles.
    pub(crate) fn can_exist() -> bool {
        directory().is_ok()
    }

    /// Returns the path of the login file.
    fn path(&self) -> Result<PathBuf, Failure> {
        Ok(directory()?.join(format!("{}.json", self.0)))
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl FromStr for Profile {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = (1..=MAX_PROFILE).contains(&text.len())
            && !text.starts_with(['.', '-'])
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if is_name {
            Ok(Self(text.to_owned()))
        } else {
            Err("must be 1 to 64 letters, digits and ._-, and begin with a letter, a digit or _")
        }
    }
}

/// A login, in the format of its file.
#[derive(Serialize, Deserialize)]
pub struct Login {
    /// Address of the server.
    pub url: String,
    /// Certificates of the server's authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Unix socket of the server, which `quickstart` stores. Requests use it instead of the host and port of the URL,
    /// because another user can listen on the port of a stopped server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<ServerSocket>,
    /// E-mail address of the account.
    pub email: String,
    /// The session, until the user logs out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<StoredSession>,
    /// The activation listener for this user's jobs, which `quickstart` stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<StoredActivation>,
}

/// A session of an account.
#[derive(Serialize, Deserialize)]
pub struct StoredSession {
    /// The access token.
    pub access_token: WireSecret,
    /// Time at which the token expires, in RFC 3339.
    pub expires_at: String,
}

/// An activation listener and the file of its integration token, with which `exec` and `activate` need no flags. They
/// are used together or not at all, so that the token is sent only to the listener that accepts it.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredActivation {
    /// Address of the listener, in the format of `--activation-url`.
    pub url: String,
    /// Path of the token file. The profile does not contain the token.
    pub token_file: PathBuf,
    /// Id of the user who runs the server. A socket of another user does not get the token.
    pub server_user: u32,
}

impl Login {
    /// Reads the login of a profile and its session. Fails if there is none.
    pub fn read(profile: &Profile) -> Result<(Self, StoredSession), Failure> {
        let log_in = profile.login_command();
        match Self::find(profile)?.and_then(|mut login| login.session.take().map(|session| (login, session))) {
            Some(found) => Ok(found),
            None if profile.as_str() == Profile::DEFAULT => {
                Err(Failure::new(format!("you are not logged in. Run `{log_in}`")))
            }
            None => Err(Failure::new(format!(
                "you are not logged in to profile {}. Run `{log_in}`; `orgvault profiles` lists your logins",
                profile.as_str()
            ))),
        }
    }

    /// Reads the login of a profile, if it has one.
    pub fn find(profile: &Profile) -> Result<Option<Self>, Failure> {
        let path = profile.path()?;
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
        }
        let bytes = secret_file::read("login", &path, MAX_FILE)?;
        // The parser's message could contain part of the token.
        let damaged = |_| {
            let path = path.display();
            Failure::new(format!("{path} is damaged. Remove it and run `{}`", profile.login_command()))
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Stores the login for later commands. Replaces an earlier login of the profile.
    pub fn write(&self, profile: &Profile) -> Result<PathBuf, Failure> {
        let path = profile.path()?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        let failed = |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let text = Zeroizing::new(serde_json::to_vec(self)?);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
        let written = file.write_all(&text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&new); // report the first error
            failed(error)
        })?;
        Ok(path)
    }

    /// Stores the login without a session, or removes it if it contains nothing else that `quickstart` stored.
    pub fn end(&self, profile: &Profile) -> Result<(), Failure> {
        if self.socket.is_some() || self.activation.is_some() {
            return self.write(profile).map(drop);
        }
        let path = profile.path()?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::new(format!("cannot remove {}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Returns the session of a profile. Fails if it has none.
    pub fn session(profile: &Profile) -> Result<Session, Failure> {
        let (login, session) = Self::read(profile)?;
        Ok(login.client(None)?.resume(session.access_token.into_secret()))
    }

    /// Returns a client of the server, with a time limit for each request. It sends no token.
    pub fn client(&self, deadline: Option<Duration>) -> Result<Client, Failure> {
        let settings = ClientSettings { ca_file: self.ca_file.clone(), deadline, socket: self.socket.clone() };
        Ok(Client::with(&self.url, &settings)?)
    }
}

/// Returns the directory for logins, in the user's state directory.
fn directory() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| Failure::new("no directory for the login: set HOME or XDG_STATE_HOME"))?;
    Ok(state.join("orgvault/logins"))
}

/// Describes a failed request: the operation, the cause and the next step.
pub fn failure(doing: &str, error: &ClientError) -> Failure {
    Failure::new(format!("cannot {doing}: {}", refused(error, &Profile::default(), None)))
}

/// Converts an error of the HTTP API: names flags instead of JSON pointers, and adds the next step. `object` is the message
/// for an object that does not exist.
pub fn refused(error: &ClientError, profile: &Profile, object: Option<&str>) -> Failure {
    match (error, error.code(), object) {
        (_, Some(ProblemCode::InvalidToken), _) => {
            Failure::new(format!("your login has expired or was revoked. Run `{}`", profile.login_command()))
        }
        (_, Some(ProblemCode::NotFound), Some(object)) => Failure::new(object),
        (ClientError::Problem { problem, .. }, ..) if !problem.errors.is_empty() => {
            let errors = problem.errors.iter().map(|error| (flag_of(&error.pointer), &*error.detail));
            Failure::new(printable(&rejected(errors)))
        }
        (ClientError::Problem { problem, .. }, Some(ProblemCode::Conflict), Some(_)) => {
            let detail = printable(problem.detail.trim_end_matches('.'));
            let mut rest = detail.chars();
            let first = rest.next().map(|first| first.to_ascii_lowercase());
            Failure::new(first.into_iter().chain(rest).collect::<String>())
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_names_a_file_of_its_directory() {
        for name in ["default", "prod", "a.b_c-1", "7", &"a".repeat(64)] {
            assert_eq!(name.parse::<Profile>().map(|profile| profile.0).as_deref(), Ok(name));
        }
        for name in ["", ".", "..", ".hidden", "-x", "a/b", "a b", "ä", &"a".repeat(65)] {
            assert!(name.parse::<Profile>().is_err(), "{name}");
        }
    }
}
