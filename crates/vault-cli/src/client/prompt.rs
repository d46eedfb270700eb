//! Terminal prompts. The terminal does not echo secrets.

use crate::failure::Failure;
use crate::secret_file;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use std::io::{self, IsTerminal, Read as _, Write as _};
use std::path::Path;

/// Maximum length of an answer in bytes: the maximum line length of a terminal.
const MAX_ANSWER: usize = 4 * 1024;

/// Reads the secret from the file that `flag` names, or prompts for `what`.
pub(crate) fn secret(flag: &str, file: Option<&Path>, what: &str) -> Result<SecretString, Failure> {
    let Some(path) = file else { return hidden(flag, what) };
    let bytes = secret_file::read_or_stdin(flag, path, MAX_ANSWER)?;
    let text =
        std::str::from_utf8(&bytes).map_err(|_| Failure::new(format!("{flag}: the {what} must be UTF-8 text")))?;
    Ok(SecretString::from(without_newline(text)))
}

/// Prompts for `what` without echo. `flag` is the alternative for scripts.
pub(crate) fn hidden(flag: &str, what: &str) -> Result<SecretString, Failure> {
    let answer = ask(flag, what, true)?;
    Ok(SecretString::from(answer.as_str()))
}

/// Prompts for `what`. `flag` is the alternative for scripts.
pub fn line(flag: &str, what: &str) -> Result<String, Failure> {
    Ok(ask(flag, what, false)?.trim().to_owned())
}

/// Reads the passcode from the file that `flag` names, or prompts for it. Removes white space, because authenticator
/// apps show and copy the digits in groups.
pub(crate) fn passcode(flag: &str, file: Option<&Path>, what: &str) -> Result<SecretString, Failure> {
    let typed = secret(flag, file, what)?;
    Ok(without_spaces(typed.expose_secret())) // sent to the server, without spaces
}

fn without_spaces(text: &str) -> SecretString {
    let mut digits = String::with_capacity(text.len()); // growing would leave copies in memory
    digits.extend(text.chars().filter(|one| !one.is_whitespace()));
    SecretString::from(digits)
}

fn without_newline(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}

fn ask(flag: &str, what: &str, hide: bool) -> Result<Zeroizing<String>, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage(format!("{what} required, but standard input is not a terminal. Pass {flag}")));
    }
    let mut stderr = io::stderr().lock();
    // Disable echo before the prompt, so that input that arrives early is not shown.
    let silence = if hide { Some(Silence::begin()?) } else { None };
    write!(stderr, "{what}: ")?;
    stderr.flush()?;
    let mut answer = Zeroizing::new(Vec::with_capacity(MAX_ANSWER)); // growing would leave copies in memory
    let mut lock = stdin.lock();
    let mut byte = [0];
    while answer.len() < MAX_ANSWER && lock.read(&mut byte)? == 1 {
        answer.extend_from_slice(&byte);
        if byte == *b"\n" {
            break;
        }
    }
    if silence.is_some() {
        writeln!(stderr)?;
    }
    drop(silence);
    if answer.is_empty() {
        return Err(Failure::new(format!("no value entered for {what}. Nothing was changed")));
    }
    let text = std::str::from_utf8(&answer).map_err(|_| Failure::new(format!("the {what} must be UTF-8 text")))?;
    Ok(Zeroizing::new(without_newline(text).to_owned()))
}

/// Disables the terminal's echo until it is dropped.
struct Silence(Termios);

impl Silence {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0); // the terminal may be disconnected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passcodes_may_be_typed_in_groups() {
        for typed in ["123456", "123 456", " 123\u{a0}456 ", "12\u{202f}34\u{2009}56\t", "1 2 3 4 5 6"] {
            assert_eq!(without_spaces(typed).expose_secret(), "123456", "{typed:?}");
        }
        assert_eq!(without_spaces("12345-67890 12345").expose_secret(), "12345-6789012345");
    }
}
