//! Detection of whether another process is still running.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::path::Path;

/// The identity of a process. An ID alone may be reused, but ID and start time (proc_pid_stat(5)) are unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// PID namespace of `pid`.
    namespace: String,
    pid: Pid,
    /// Start time, in clock ticks since boot.
    started: String,
}

impl Life {
    /// Returns the process with this ID. `None` if it has exited, or `/proc` is not available.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let (_, started) = stat(pid)?;
        Some(Self { namespace: namespace()?, pid, started })
    }

    /// Formats the identity for [`Life::parse`].
    pub(crate) fn to_text(&self) -> String {
        format!("{} {} {}\n", self.namespace, self.pid.as_raw_nonzero(), self.started)
    }

    /// Parses the text of [`Life::to_text`].
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        let (namespace, pid, started) = (words.next()?.to_owned(), words.next()?, words.next()?.to_owned());
        let pid = pid.parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
        words.next().is_none().then_some(Self { namespace, pid, started })
    }

    /// Returns whether the process has exited. A process in another container, or one that this user cannot see, counts
    /// as running.
    pub(crate) fn has_ended(&self) -> bool {
        if namespace().is_none_or(|ours| ours != self.namespace) {
            return false;
        }
        match (test_kill_process(self.pid), stat(self.pid)) {
            (Err(Errno::SRCH), _) => true,
            // A zombie has exited. Only its parent has not collected the status yet.
            (_, Some((state, started))) => matches!(state, 'Z' | 'X') || started != self.started,
            (_, None) => false,
        }
    }
}

/// Returns the PID namespace of this process.
fn namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/pid").ok().map(|link| link.to_string_lossy().into_owned())
}

/// Returns state and start time of a process.
fn stat(pid: Pid) -> Option<(char, String)> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("stat")).ok()?;
    // The name is in parentheses, and may contain some itself.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use std::process::{Command, Stdio};

    #[test]
    fn process_is_identified_until_it_exits() {
        let ours = Life::of(getpid()).expect("this process");
        assert!(!ours.has_ended());
        assert_eq!(Life::parse(&ours.to_text()), Some(ours.clone()));
        // The same ID with another start time, or in another PID namespace.
        assert!(Life { started: "1".to_owned(), ..ours.clone() }.has_ended());
        assert!(!Life { namespace: "pid:[1]".to_owned(), started: "1".to_owned(), ..ours }.has_ended());

        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a number");
        let life = Life::of(pid).expect("it runs");
        assert!(!life.has_ended());
        drop(child.stdin.take());
        std::io::copy(&mut child.stdout.take().expect("a pipe"), &mut std::io::sink()).expect("its end");
        // The process is a zombie until it is waited for.
        rustix::process::waitid(
            rustix::process::WaitId::Pid(pid),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .expect("its end");
        assert!(life.has_ended());
        child.wait().expect("its status");
        assert!(life.has_ended() && Life::of(pid).is_none_or(|other| other != life));
    }

    #[test]
    fn only_whole_lines_are_read() {
        for text in ["", "\n", "pid:[1] 1\n", "pid:[1] 1 2", "pid:[1] 0 2\n", "pid:[1] -1 2\n", "pid:[1] 1 2 3\n"] {
            assert_eq!(Life::parse(text), None, "{text:?}");
        }
    }
}
