//! The process of a command, from its start to its exit.
//!
//! The kernel stops the command when `exec` is killed (`PR_SET_PDEATHSIG`, prctl(2)). A process can request this only
//! for itself, so the new process first runs this program, which makes the request and then replaces itself by the
//! command.

use super::signals::{Signals, comes_from_terminal};
use crate::failure::Failure;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use std::env::{ArgsOs, args_os};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::ExitStatus;
use tokio::process::{Child, Command};

/// Exit status of a command that was not found, as in shells.
const NOT_FOUND: u8 = 127;
/// Exit status of a command that was found but cannot be started.
const NOT_STARTED: u8 = 126;
/// This program, even if its file was replaced after the start.
const OURSELVES: &str = "/proc/self/exe";
/// Name under which this program replaces itself by a command. The arguments are the ID of the parent process, the
/// command, and its arguments.
const BECOMES_COMMAND: &str = "orgvault-exec-command";

/// Returns the process to start for the program `line[0]` and its arguments. It is stopped when this process dies.
pub fn command(line: &[OsString]) -> Command {
    if !Path::new(OURSELVES).exists() {
        // Without /proc, the command continues when this process dies.
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        return command;
    }
    let mut command = Command::new(OURSELVES);
    command.arg0(BECOMES_COMMAND).arg(getpid().as_raw_nonzero().to_string()).args(line);
    command
}

/// Replaces this process by the command if [`command`] started it. Returns only if that is unnecessary or fails.
pub fn become_command() -> Result<(), Failure> {
    let mut arguments = args_os();
    if arguments.next().is_some_and(|name| name == BECOMES_COMMAND) { Err(replace_process(arguments)) } else { Ok(()) }
}

fn replace_process(mut arguments: ArgsOs) -> Failure {
    let parent = arguments.next().and_then(|pid| pid.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let Some(program) = arguments.next() else { return Failure::new("no command is named") };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        return not_started(&program, &error.into());
    }
    // If the parent died before the request, the kernel sends no signal.
    if getppid() != parent {
        return Failure::with_status(
            format!("{} was not started, because orgvault exec has exited", program.to_string_lossy()),
            NOT_STARTED,
        );
    }
    let error = std::process::Command::new(&program).args(arguments).exec();
    not_started(&program, &error)
}

fn not_started(program: &std::ffi::OsStr, error: &std::io::Error) -> Failure {
    let status = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
    Failure::with_status(format!("cannot start {}: {error}", program.to_string_lossy()), status)
}

/// Starts the command.
pub fn start(mut command: Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| not_started(command.as_std().get_program(), &error))
}

/// Returns the process ID.
pub fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// Waits for the exit and forwards signals. Returns the exit status for this process.
pub async fn wait(mut child: Child, signals: &mut Signals) -> Result<u8, Failure> {
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status_of(status?)),
            signal = signals.next() => {
                // Until the process is waited for, its ID cannot be reused.
                if let Some(pid) = pid(&child).filter(|_| !comes_from_terminal(signal)) {
                    let _ = kill_process(pid, signal); // it may have exited
                }
            }
        }
    }
}

/// Returns the command's exit status, or 128 plus the signal number, as in shells.
fn status_of(status: ExitStatus) -> u8 {
    let status = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    status.and_then(|status| u8::try_from(status).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Wait statuses as in wait(2): the exit status in the second byte, the signal in the low seven bits, and the
        /// core dump flag in the eighth.
        #[test]
        fn every_exit_has_its_status(code: u8, signal in 1..65_i32, dumped: bool) {
            prop_assert_eq!(status_of(ExitStatus::from_raw(i32::from(code) << 8)), code);
            let end = ExitStatus::from_raw(signal | if dumped { 0x80 } else { 0 });
            prop_assert_eq!(i32::from(status_of(end)), 128 + signal);
        }
    }
}
