//! The owner rule: a data directory and a settings file are used only if they belong to this process's user or to root,
//! and no other user can write to them. The check is on the opened file or the directory behind symbolic links. A user who
//! can replace a directory on the path can only replace it with one to which the same rule applies.

use rustix::process::{getegid, geteuid};
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use vault_cli::failure::Failure;
use vault_cli::text::{program, quoted};

/// Checks the data directory `path`. Returns its absolute path, without symbolic links if it exists.
pub(crate) fn directory(path: &Path) -> Result<PathBuf, Failure> {
    match path.canonicalize() {
        Ok(path) => check(&path, &path.metadata()?).map(|()| path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(std::path::absolute(path)?),
        Err(error) => Err(Failure::new(format!("cannot open the directory {}: {error}", path.display()))),
    }
}

/// Rejects a data directory or settings file that belongs to another user, or to which others can write.
pub(crate) fn check(path: &Path, found: &Metadata) -> Result<(), Failure> {
    check_owner(path, found).map_err(|failure| match found.is_dir() {
        true => failure,
        false => failure.noting(format!("if you trust the file, run `chown {} {}`", geteuid().as_raw(), shown(path))),
    })?;
    let mode = found.mode() & 0o7777;
    // Kubernetes opens a volume for the group of the pod's processes (fsGroup).
    let is_volume = found.is_dir() && mode & 0o2000 != 0 && found.gid() == getegid().as_raw();
    let writable = if is_volume { 0o002 } else { 0o022 };
    if mode & writable == 0 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} has mode {mode:04o}, so other users can write to it. If you trust its content, run `chmod go-w {}`",
        path.display(),
        shown(path)
    )))
}

fn shown(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// Rejects an embedded database that belongs to another user, or that is in another user's directory.
pub(crate) fn check_database(database: &Path) -> Result<(), Failure> {
    for path in database.parent().into_iter().chain([database]) {
        match fs::metadata(path) {
            Ok(found) => check_owner(path, &found)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::new(format!("cannot open {}: {error}", path.display()))),
        }
    }
    Ok(())
}

fn check_owner(path: &Path, found: &Metadata) -> Result<(), Failure> {
    let user = geteuid().as_raw();
    match found.uid() {
        owner if owner == user || owner == 0 => Ok(()),
        owner => Err(Failure::new(belongs_to(&path.display().to_string(), owner, user))),
    }
}

/// Describes that `what` belongs to user `owner`, with the command to run instead.
pub(crate) fn belongs_to(what: &str, owner: u32, user: u32) -> String {
    let [owner_name, user] = [owner, user].map(|id| account(id).unwrap_or_else(|| id.to_string()));
    let account = account(owner).unwrap_or_else(|| format!("'#{owner}'"));
    format!(
        "{what} belongs to user {owner_name}, and you are {user}. Run the command as that user: `sudo {}-u {account} {} {}`",
        preserved(),
        program(),
        arguments()
    )
}

/// Returns the arguments of this process for a shell, without a password in a URL.
fn arguments() -> String {
    let shown = std::env::args_os().skip(1).map(|argument| {
        let argument = argument.to_string_lossy();
        if argument.contains("://") && argument.contains('@') { "…".to_owned() } else { quoted(&argument) }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Returns the flag of sudo for the settings in the environment, which sudo removes.
fn preserved() -> String {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("ORGVAULT_")).collect();
    names.sort();
    if names.is_empty() { String::new() } else { format!("--preserve-env={} ", quoted(&names.join(","))) }
}

/// Returns the name of a local account.
fn account(id: u32) -> Option<String> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let found = accounts.lines().map(fields).find(|fields| fields.get(2).is_some_and(|uid| *uid == id.to_string()))?;
    found.into_iter().next()
}
