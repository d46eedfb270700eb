//! Shell completion: the shell runs this program.

use crate::cli;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use vault_cli::failure::Failure;

/// Environment variable with which a shell requests completions.
const VARIABLE: &str = "ORGVAULT_COMPLETE";

/// If a shell requests completions, prints them and exits.
pub(crate) fn answer() {
    CompleteEnv::with_factory(cli::command).var(VARIABLE).bin("orgvault").completer("orgvault").complete();
}

/// Returns the completion script for `shell`.
pub(crate) fn script(shell: Shell) -> Result<String, Failure> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or_else(|| Failure::new(format!("no completion for {name}")))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "orgvault", "orgvault", "orgvault", &mut script)?;
    Ok(String::from_utf8(script)?)
}
