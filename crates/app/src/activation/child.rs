//! A command, from its start to its end.

use super::signals::{Signals, comes_from_terminal};
use crate::failure::Failure;
use rustix::process::{Pid, kill_process};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use tokio::process::{Child, Command};

/// A command that was not found, as shells say it.
const NOT_FOUND: u8 = 127;
/// A command that was found and cannot be started.
const NOT_STARTED: u8 = 126;

/// Starts it.
pub(crate) fn start(mut command: Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| {
        let status = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        Failure::with_status(format!("cannot start {program}: {error}"), status)
    })
}

/// Its number.
pub(crate) fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// Waits until it ends and passes signals on to it; gives the exit status to end with.
pub(crate) async fn wait(mut child: Child, signals: &mut Signals) -> Result<u8, Failure> {
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status_of(status?)),
            signal = signals.next() => {
                // Until it has been waited for, the number is nobody else's.
                if let Some(pid) = pid(&child).filter(|_| !comes_from_terminal(signal)) {
                    let _ = kill_process(pid, signal); // it may have ended
                }
            }
        }
    }
}

/// Its own exit status, or 128 and the signal's number, as shells say it.
fn status_of(status: ExitStatus) -> u8 {
    let status = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    status.and_then(|status| u8::try_from(status).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As wait(2) tells them: an exit status in the second byte, a signal in the low seven bits, and whether memory
        /// was written out in the eighth.
        #[test]
        fn every_end_has_its_status(code: u8, signal in 1..65_i32, dumped: bool) {
            prop_assert_eq!(status_of(ExitStatus::from_raw(i32::from(code) << 8)), code);
            let end = ExitStatus::from_raw(signal | if dumped { 0x80 } else { 0 });
            prop_assert_eq!(i32::from(status_of(end)), 128 + signal);
        }
    }
}
