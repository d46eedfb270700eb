//! How a command ends when it does not do what it was asked.

use std::fmt;
use std::process::ExitCode;

/// What to say, and the exit status that goes with it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// Refused or failed: status 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 1 }
    }

    /// Asked for in a wrong way: status 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 2 }
    }

    /// Failed, with an exit status that says more.
    pub(crate) fn with_status(message: impl Into<String>, status: u8) -> Self {
        Self { message: message.into(), status }
    }

    /// The same failure, with `status` where it had no other than 1.
    #[must_use]
    pub(crate) fn or_status(self, status: u8) -> Self {
        Self { status: if self.status == 1 { status } else { self.status }, ..self }
    }

    /// The same failure, with a note on the circumstances.
    #[must_use]
    pub(crate) fn noting(self, note: impl fmt::Display) -> Self {
        Self { message: format!("{} ({note})", self.message), ..self }
    }

    /// The exit status.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Any error, with its causes, as one line.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        Self::new(message)
    }
}
