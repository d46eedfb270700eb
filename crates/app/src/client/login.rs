//! The login of this user, kept between commands: where, as whom, and the access token.

use crate::failure::Failure;
use crate::run_as::NamedFiles;
use crate::secret_file;
use secrecy::zeroize::Zeroizing;
use serde::{Deserialize, Serialize};
use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use vault_client::{Client, ClientError, ClientSettings, ProblemCode, Session, WireSecret};

/// The longest file that is read, in bytes.
const MAX_FILE: usize = 16 * 1024;

/// A login, as its file holds it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Login {
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) email: String,
    pub(crate) access_token: WireSecret,
    pub(crate) expires_at: String,
}

impl Login {
    /// The login of this user.
    pub(crate) fn read() -> Result<Self, Failure> {
        let path = path()?;
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Err(Failure::new("you are not logged in. Run `orgvault login`")),
            Err(error) => return Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
        }
        let bytes = secret_file::read(&NamedFiles::default(), "login", &path, MAX_FILE)?;
        // The parser's message could repeat a part of the token.
        let damaged = |_| Failure::new(format!("{} is damaged. Run `orgvault login` again", path.display()));
        serde_json::from_slice(&bytes).map_err(damaged)
    }

    /// Keeps the login for later commands, in place of an earlier one.
    pub(crate) fn write(&self) -> Result<PathBuf, Failure> {
        let path = path()?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        let failed = |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let text = Zeroizing::new(serde_json::to_vec(self)?);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
        let written = file.write_all(&text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&new); // the first error is the one to tell
            failed(error)
        })?;
        Ok(path)
    }

    /// Forgets the login.
    pub(crate) fn remove() -> Result<(), Failure> {
        let path = path()?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::new(format!("cannot remove {}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// The session that it began.
    pub(crate) fn session(self) -> Result<Session, Failure> {
        let settings = ClientSettings { ca_file: self.ca_file };
        Ok(Client::with(&self.url, &settings)?.resume(self.access_token.into_secret()))
    }
}

/// Where the login is kept: in the user's state directory.
fn path() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| Failure::new("no place for the login: set HOME or XDG_STATE_HOME"))?;
    Ok(state.join("orgvault/login.json"))
}

/// What was being done, what stood in the way, and what to do.
pub(crate) fn failure(doing: &str, error: &ClientError) -> Failure {
    let said = Failure::from(error);
    Failure::new(match error.code() {
        Some(ProblemCode::InvalidToken) => {
            format!("cannot {doing}: your login has expired or was ended. Run `orgvault login`")
        }
        _ => format!("cannot {doing}: {said}"),
    })
}
