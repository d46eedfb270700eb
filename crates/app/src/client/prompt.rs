//! Asks for secrets on the terminal, where they are not shown.

use crate::failure::Failure;
use crate::run_as::NamedFiles;
use crate::secret_file;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use std::io::{self, IsTerminal, Read as _, Write as _};
use std::path::Path;

/// The longest password or passcode that is read, in bytes.
const MAX_SECRET: usize = 2 * 1024;

/// The secret in the file that `flag` names, or what the terminal's user types when asked for `what`.
pub(crate) fn secret(flag: &str, file: Option<&Path>, what: &str) -> Result<SecretString, Failure> {
    let bytes = match file {
        Some(path) => secret_file::read_or_stdin(&NamedFiles::default(), flag, path, MAX_SECRET)?,
        None => ask(flag, what)?,
    };
    let text =
        std::str::from_utf8(&bytes).map_err(|_| Failure::new(format!("{flag}: the {what} must be UTF-8 text")))?;
    let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
    Ok(SecretString::from(text))
}

fn ask(flag: &str, what: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage(format!("{what} required, but standard input is not a terminal. Pass {flag}")));
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{what}: ")?;
    stderr.flush()?;
    let silence = Silence::begin()?;
    let mut line = Zeroizing::new(Vec::with_capacity(MAX_SECRET)); // one that grows leaves copies behind
    let mut lock = stdin.lock();
    let mut byte = [0];
    while line.len() < MAX_SECRET && lock.read(&mut byte)? == 1 {
        line.extend_from_slice(&byte);
        if byte == *b"\n" {
            break;
        }
    }
    drop(silence);
    writeln!(stderr)?;
    Ok(line)
}

/// While it lives, the terminal does not show what is typed.
struct Silence(Termios);

impl Silence {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0); // the terminal may be gone
    }
}
