//! A user's computer: a home directory, and nothing of the vault.

use crate::account::Account;
use crate::binary::{self, Run};
use crate::integration::write_private;
use crate::vault::Vault;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A home directory from which a user runs commands.
pub struct Desk {
    home: PathBuf,
}

impl Desk {
    /// Creates the home directory `name`.
    pub fn of(vault: &Vault, name: &str) -> Self {
        let home = vault.scratch(name);
        std::fs::create_dir(&home).unwrap();
        Self { home }
    }

    /// Creates a home directory with the login of `account`.
    #[track_caller]
    pub fn with_login(vault: &Vault, account: &Account) -> Self {
        let desk = Self::of(vault, "desk");
        desk.log_in(vault, account, &[]).done();
        desk
    }

    /// Returns the home directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the file of the login of a profile.
    pub fn kept(&self, profile: &str) -> PathBuf {
        self.home.join(format!(".local/state/orgvault/logins/{profile}.json"))
    }

    /// Writes a file that only its owner can read, and returns its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.home.join(name);
        write_private(&path, content);
        path.to_str().unwrap().to_owned()
    }

    /// Returns a command that runs in the home directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.at_home(binary::command(), arguments)
    }

    /// Lets `command`, which runs the binary, run in the home directory.
    pub fn at_home(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.env("HOME", &self.home).env_remove("XDG_STATE_HOME").env_remove("XDG_RUNTIME_DIR");
        command.current_dir(&self.home).args(arguments);
        command
    }

    /// Runs a command.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(arguments))
    }

    /// Runs a command and returns its JSON output.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).done().json()
    }

    /// Logs in at the server of `vault`, with more arguments.
    #[track_caller]
    pub fn log_in(&self, vault: &Vault, account: &Account, more: &[&str]) -> Run {
        let password = self.file("password", &format!("{}\n", account.password));
        let passcode = self.file("passcode", &account.recovery_code());
        let url = format!("http://{}/v1", vault.address());
        let files = ["--password-file", &password, "--passcode-file", &passcode];
        self.run(&[&["login", "--url", &url, "--email", &account.email, "--json"][..], &files, more].concat())
    }
}
