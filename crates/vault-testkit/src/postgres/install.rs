//! Location of the PostgreSQL installation, and the user that runs it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The programs of one version of PostgreSQL.
#[derive(Debug)]
pub(super) struct Installation {
    programs: PathBuf,
    /// The user that runs the server if this process runs as root, which the server rejects.
    user: Option<&'static str>,
}

impl Installation {
    /// Returns the first complete installation in `PATH`, or otherwise the newest one in the default directories.
    ///
    /// # Panics
    ///
    /// PostgreSQL is not installed.
    pub(super) fn find() -> Self {
        let found = in_path().chain(in_usual_places()).find(|directory| is_complete(directory));
        let programs = found.unwrap_or_else(|| {
            panic!(
                "This test needs PostgreSQL 13 or later, and there is none on this machine: neither in PATH nor under \
                 /usr/lib/postgresql. Install it (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install \
                 postgresql-server; Alpine: apk add postgresql; macOS: brew install postgresql). No server needs to \
                 be configured or running."
            )
        });
        Self { programs, user: is_root().then(unprivileged_user) }
    }

    /// Returns `true` if an extension is installed.
    pub(super) fn has_extension(&self, name: &str) -> bool {
        let asked = Command::new(self.path("pg_config")).arg("--sharedir").output();
        let Ok(output) = asked else { return false };
        let directory = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
        directory.join("extension").join(format!("{name}.control")).is_file()
    }

    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.programs.join(program)
    }

    /// Returns a program of this installation, or `sh`, run as the server's user.
    pub(super) fn command(&self, program: &str) -> Command {
        let program = if program == "sh" { PathBuf::from(program) } else { self.path(program) };
        let mut command = match self.user {
            None => Command::new(program),
            Some(user) => {
                let mut command = Command::new(runuser());
                command.args(["-u", user, "--"]).arg(program);
                command
            }
        };
        // That user may not have access to the working directory.
        command.current_dir("/").stdin(Stdio::null());
        without_settings(&mut command);
        command
    }

    /// Returns a client program of this installation, run as the current user.
    pub(super) fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.path(program));
        command.stdin(Stdio::null());
        without_settings(&mut command);
        command
    }

    /// Changes the owner of the directory to the server's user.
    pub(super) fn give(&self, directory: &Path) {
        if let Some(user) = self.user {
            succeed("chown", Command::new("chown").arg(user).arg(directory).output());
        }
    }
}

/// Returns the output of the program.
///
/// # Panics
///
/// The program failed. The message contains its error.
pub(super) fn succeed(program: &str, outcome: io::Result<Output>) -> String {
    let output = outcome.unwrap_or_else(|error| panic!("{program} does not start: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} failed: {complaint}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Removes variables of the user's own servers (`PGHOST`, `PGDATA`, `PGPORT`, …).
fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
}

fn is_complete(directory: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres", "createdb", "psql"].iter().all(|program| directory.join(program).is_file())
}

/// Returns the resolved directories of each `initdb` in `PATH`: a link may point into a complete installation.
fn in_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = std::env::split_paths(&path).collect();
    directories.into_iter().flat_map(|directory| {
        let real = directory.join("initdb").canonicalize().ok();
        [Some(directory), real.and_then(|initdb| Some(initdb.parent()?.to_owned()))].into_iter().flatten()
    })
}

fn in_usual_places() -> impl Iterator<Item = PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = Vec::new();
    for (parent, prefix) in
        [("/usr/lib/postgresql", ""), ("/usr", "pgsql-"), ("/opt/homebrew/opt", "postgresql@"), ("/usr/local", "pgsql")]
    {
        for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(prefix));
            if let Some(version) = version {
                versions.push((version.parse().unwrap_or(0), entry.path().join("bin")));
            }
        }
    }
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, programs)| programs)
}

fn is_root() -> bool {
    // The entry of the process in `/proc` belongs to its user. Elsewhere, run `id`.
    std::fs::metadata("/proc/self").map(|own| own.uid() == 0).unwrap_or_else(|_| {
        Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
    })
}

/// It is part of util-linux, in a directory that `PATH` may not contain.
fn runuser() -> &'static str {
    let places = ["/usr/sbin/runuser", "/sbin/runuser", "/usr/bin/runuser"];
    places.into_iter().find(|place| Path::new(place).is_file()).unwrap_or("runuser")
}

fn unprivileged_user() -> &'static str {
    let exists =
        |user: &&str| Command::new("id").args(["-u", user]).output().is_ok_and(|output| output.status.success());
    ["postgres", "nobody"].into_iter().find(exists).expect("a user to run PostgreSQL as: postgres or nobody")
}
