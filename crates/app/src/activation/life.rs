//! Whether a process still runs that somebody else started.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::path::Path;

/// A process. Its number alone could be another's by now; number and start (proc_pid_stat(5)) are one process's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// In whose numbers.
    namespace: String,
    pid: Pid,
    /// In ticks since the machine was started.
    started: String,
}

impl Life {
    /// The process that has this number now; `None` if it is gone, or `/proc` does not tell.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let (_, started) = stat(pid)?;
        Some(Self { namespace: namespace()?, pid, started })
    }

    /// The text that [`Life::parse`] reads.
    pub(crate) fn to_text(&self) -> String {
        format!("{} {} {}\n", self.namespace, self.pid.as_raw_nonzero(), self.started)
    }

    /// What [`Life::to_text`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        let (namespace, pid, started) = (words.next()?.to_owned(), words.next()?, words.next()?.to_owned());
        let pid = pid.parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
        words.next().is_none().then_some(Self { namespace, pid, started })
    }

    /// Whether it has ended, as far as can be told: a process of another container, or one that this user cannot see,
    /// counts as running.
    pub(crate) fn is_over(&self) -> bool {
        if namespace().is_none_or(|ours| ours != self.namespace) {
            return false;
        }
        match (test_kill_process(self.pid), stat(self.pid)) {
            (Err(Errno::SRCH), _) => true,
            // A zombie has ended; its parent has not asked for its status yet.
            (_, Some((state, started))) => matches!(state, 'Z' | 'X') || started != self.started,
            (_, None) => false,
        }
    }
}

/// The namespace of process numbers that this process is in.
fn namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/pid").ok().map(|link| link.to_string_lossy().into_owned())
}

/// The state and the start of a process.
fn stat(pid: Pid) -> Option<(char, String)> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("stat")).ok()?;
    // The name stands in parentheses, and may hold any.
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
    fn a_process_lives_until_it_ends_and_is_no_other() {
        let ours = Life::of(getpid()).expect("this process");
        assert!(!ours.is_over());
        assert_eq!(Life::parse(&ours.to_text()), Some(ours.clone()));
        // The same number, started at another time or counted by somebody else.
        assert!(Life { started: "1".to_owned(), ..ours.clone() }.is_over());
        assert!(!Life { namespace: "pid:[1]".to_owned(), started: "1".to_owned(), ..ours }.is_over());

        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a number");
        let life = Life::of(pid).expect("it runs");
        assert!(!life.is_over());
        drop(child.stdin.take());
        std::io::copy(&mut child.stdout.take().expect("a pipe"), &mut std::io::sink()).expect("its end");
        // A zombie first, since nobody has waited for it.
        rustix::process::waitid(
            rustix::process::WaitId::Pid(pid),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .expect("its end");
        assert!(life.is_over());
        child.wait().expect("its status");
        assert!(life.is_over() && Life::of(pid).is_none_or(|other| other != life));
    }

    #[test]
    fn only_whole_lines_are_read() {
        for text in ["", "\n", "pid:[1] 1\n", "pid:[1] 1 2", "pid:[1] 0 2\n", "pid:[1] -1 2\n", "pid:[1] 1 2 3\n"] {
            assert_eq!(Life::parse(text), None, "{text:?}");
        }
    }
}
