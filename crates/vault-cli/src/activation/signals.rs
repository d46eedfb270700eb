//! Signals that are forwarded to a command.

use crate::failure::Failure;
use rustix::process::{Signal, getpgrp};
use rustix::termios::tcgetpgrp;
use std::fs::File;
use std::future::poll_fn;
use std::task::Poll;
use tokio::signal::unix::{SignalKind, signal};

const PASSED_ON: [Signal; 6] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// A stream of signals, which then no longer stop this process.
pub struct Signals {
    streams: Vec<(Signal, tokio::signal::unix::Signal)>,
}

impl Signals {
    /// Listens for all forwarded signals, except those that this process inherited as ignored. A command under `nohup`
    /// must ignore them too.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        let mut streams = Vec::new();
        for wanted in PASSED_ON.into_iter().filter(|signal| ignored & bit(*signal) == 0) {
            streams.push((wanted, signal(SignalKind::from_raw(wanted.as_raw()))?));
        }
        Ok(Self { streams })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.streams {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the next signal that asks to stop.
    pub(crate) async fn stop(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if asks_to_stop(signal) {
                return signal;
            }
        }
    }

    /// Discards pending signals.
    pub(crate) async fn forget(&mut self) {
        while self.arrived().await.is_some() {}
    }

    /// Returns a pending signal, if there is one.
    pub(crate) async fn arrived(&mut self) -> Option<Signal> {
        tokio::select! {
            biased;
            signal = self.next() => Some(signal),
            () = tokio::task::yield_now() => None,
        }
    }
}

pub(crate) const fn asks_to_stop(signal: Signal) -> bool {
    !matches!(signal, Signal::USR1 | Signal::USR2)
}

/// Returns whether the terminal has already sent `signal` to the command: its keys signal the whole foreground process
/// group. The command would interpret a second signal as a forced stop.
pub(crate) fn comes_from_terminal(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::QUIT) && is_in_foreground()
}

fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty").ok();
    terminal.and_then(|terminal| tcgetpgrp(&terminal).ok()).is_some_and(|foreground| foreground == getpgrp())
}

const fn bit(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}

/// Returns the set of ignored signals from `/proc/<pid>/status` (proc_pid_status(5)). Empty if it cannot be read.
fn ignored(status: &str) -> u64 {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ignored_signals_are_read() {
        let set =
            ignored("Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n");
        assert!(set & bit(Signal::HUP) != 0 && set & bit(Signal::INT) == 0 && set & bit(Signal::TERM) == 0);
        assert_eq!((ignored(""), ignored("SigIgn:\tx\n")), (0, 0));
    }

    proptest! {
        #[test]
        fn every_signal_set_is_parsed(set: u64) {
            prop_assert_eq!(ignored(&format!("SigIgn:\t{set:016x}\n")), set);
        }
    }
}
