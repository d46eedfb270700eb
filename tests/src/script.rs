//! Scripts in `tests/`, which exchange lines of JSON with a test.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use vault_testkit::stores::find_tool;

/// Returns the command that runs a script with the Python that has the packages of `tests/run`.
pub fn python(script: &str) -> Command {
    let mut command = Command::new(find_tool("aws").with_file_name("python3"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script));
    command
}

/// Returns the command that runs a script with Node. Its first argument is the directory of the npm packages of `tests/run`.
pub fn node(script: &str) -> Command {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(find_tool("node"));
    command.arg(here.join("tests").join(script)).arg(here.join("../target/tools"));
    command
}

/// A running script. Dropping it stops the script.
pub struct Script {
    child: Child,
    incoming: Receiver<Value>,
}

impl Script {
    /// Starts a script. Its standard error is that of the test.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, incoming) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { child, incoming }
    }

    /// Sends a line to the script.
    pub fn send(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Returns the next line of the script.
    #[track_caller]
    pub fn receive(&self, limit: Duration) -> Value {
        self.incoming.recv_timeout(limit).expect("a line of the script, whose packages tests/run installs")
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
