//! A program on a pseudo-terminal, as for an interactive user.

use crate::binary;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command};
use std::time::Duration;

/// Maximum time to wait for the program.
const LIMIT: Duration = Duration::from_secs(90);

/// The program and its terminal.
pub struct Terminal {
    keyboard: File,
    child: Child,
    shown: Vec<u8>,
    /// Number of shown bytes that were already inspected.
    seen: usize,
}

impl Terminal {
    /// Starts `command` on a terminal with this number of columns.
    pub fn start(mut command: Command, columns: u16) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(i32::try_from(OFlags::NOCTTY.bits()).unwrap());
        let screen = options.open(std::ffi::OsStr::from_bytes(name.as_bytes())).unwrap();
        tcsetwinsize(&screen, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        command.stdin(screen.try_clone().unwrap()).stdout(screen.try_clone().unwrap()).stderr(screen);
        let child = command.spawn().unwrap();
        drop(command); // closes its ends of the terminal, so that the terminal closes with the program
        Self { keyboard: keyboard.into(), child, shown: Vec::new(), seen: 0 }
    }

    /// Waits until `text` is shown after the previously awaited text.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        loop {
            let rest = String::from_utf8_lossy(&self.shown[self.seen..]).into_owned();
            if let Some(at) = rest.find(text) {
                self.seen += at + text.len();
                return;
            }
            assert!(self.read(), "{text:?} is not shown: {rest}");
        }
    }

    /// The rest of the line of which [`Terminal::wait_for`] found a part.
    #[track_caller]
    pub fn line(&mut self) -> String {
        loop {
            let rest = String::from_utf8_lossy(&self.shown[self.seen..]).into_owned();
            if let Some((line, _)) = rest.split_once('\n') {
                return line.to_owned();
            }
            assert!(self.read(), "the line does not end: {rest}");
        }
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits for the program's exit. Returns its status and all that was shown.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        let status = binary::wait(&mut self.child, LIMIT);
        let shown = String::from_utf8_lossy(&self.shown).replace("\r\n", "\n");
        (status.unwrap_or_else(|| panic!("the program does not end: {shown}")).code(), shown)
    }

    /// Reads further output. Returns `false` after the program has closed the terminal.
    #[track_caller]
    fn read(&mut self) -> bool {
        let deadline = Timespec { tv_sec: i64::try_from(LIMIT.as_secs()).unwrap(), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.keyboard, PollFlags::IN)], Some(&deadline)).unwrap();
        assert!(ready > 0, "the program prints nothing: {}", String::from_utf8_lossy(&self.shown));
        let mut bytes = [0; 4096];
        match self.keyboard.read(&mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.shown.extend_from_slice(&bytes[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            // On Linux, this error means that the other end is closed.
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}");
                false
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have exited
        let _ = self.child.wait();
    }
}
