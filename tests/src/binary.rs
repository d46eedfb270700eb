//! The program under test, and runs of its commands.

use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Maximum duration of a command, far longer than any needs.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the path of the binary: `ORGVAULT_BIN`, or the one next to this test in the target directory.
pub fn path() -> PathBuf {
    if let Some(path) = std::env::var_os("ORGVAULT_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a running test has a file");
    let found = test.ancestors().skip(1).map(|directory| directory.join("orgvault")).find(|file| file.is_file());
    found.expect("there is no orgvault in the target directory: run `cargo build -p app`, or set ORGVAULT_BIN")
}

/// Returns a command of the binary, in an environment without settings.
pub fn command() -> Command {
    isolated(Command::new(path()))
}

/// Removes settings in this process's environment from `command`.
pub fn isolated(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ORGVAULT_") {
            command.env_remove(name);
        }
    }
    // Tests must not read or leave a profile of the user who runs them. A test that needs profiles sets HOME and
    // removes this.
    command.env("XDG_STATE_HOME", "/dev/null/state").stdin(Stdio::null());
    command
}

/// The result of a command.
#[derive(Debug)]
pub struct Run {
    /// Exit status. `None` if a signal stopped it.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Runs `command` until it exits.
    pub fn of(command: &mut Command) -> Self {
        // Use files, because a full pipe would block the command.
        let (stdout, stderr) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        command.stdout(File::create(stdout.path()).unwrap()).stderr(File::create(stderr.path()).unwrap());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let status = wait(&mut child, LIMIT).unwrap_or_else(|| {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{command:?} does not end; it said: {}", std::fs::read_to_string(stderr.path()).unwrap())
        });
        let text = |file: &tempfile::NamedTempFile| String::from_utf8(std::fs::read(file.path()).unwrap()).unwrap();
        Self { status: status.code(), stdout: text(&stdout), stderr: text(&stderr) }
    }

    /// Asserts that the command succeeded.
    #[track_caller]
    pub fn done(self) -> Self {
        assert_eq!(self.status, Some(0), "the command failed: {} {}", self.stdout, self.stderr);
        self
    }

    /// Asserts that the command was rejected: status 1, a reason on standard error, and no output.
    #[track_caller]
    pub fn refused(self) -> Self {
        self.failed_with(1)
    }

    /// Asserts a usage error: status 2, a reason on standard error, and no output.
    #[track_caller]
    pub fn misused(self) -> Self {
        self.failed_with(2)
    }

    /// Asserts that `exec` failed before it started its command: status 125, a reason on standard error, and no output.
    #[track_caller]
    pub fn not_run(self) -> Self {
        self.failed_with(125)
    }

    #[track_caller]
    fn failed_with(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert_eq!(self.stdout, "", "a refusal prints nothing on standard output");
        assert!(!self.stderr.trim().is_empty(), "a refusal has a reason");
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Asserts that standard error contains this text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "{text:?} is missing: {self:?}");
        self
    }

    /// Asserts that standard error does not contain this text.
    #[track_caller]
    pub fn omits(self, text: &str) -> Self {
        assert!(!self.stderr.contains(text), "{text:?} is there: {self:?}");
        self
    }

    /// Asserts that standard output contains this text.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "{text:?} is missing: {self:?}");
        self
    }

    /// Parses the JSON document on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not one JSON document: {error}: {self:?}"))
    }
}

/// Waits for the exit of `child`. Returns `None` after `limit`.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if start.elapsed() > limit {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
