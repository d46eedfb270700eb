//! How a command that failed ends.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// A message and its exit status.
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

    /// Wrong usage: status 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 2 }
    }

    /// Failed, with a specific exit status.
    pub(crate) fn with_status(message: impl Into<String>, status: u8) -> Self {
        Self { message: message.into(), status }
    }

    /// The address `place`, which `flag` names, cannot be listened on.
    pub(crate) fn cannot_listen(flag: &str, place: impl fmt::Display, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => "address in use".to_owned(),
            _ => error.to_string(),
        };
        Self::new(format!("cannot listen on {place}: {reason}. Choose another with {flag}"))
    }

    /// The same failure, with `status` where it had no other than 1.
    #[must_use]
    pub(crate) fn or_status(self, status: u8) -> Self {
        Self { status: if self.status == 1 { status } else { self.status }, ..self }
    }

    /// Whether the operating system refused access.
    pub(crate) fn is_denied(&self) -> bool {
        self.message.contains("ermission denied") || self.message.contains("not permitted")
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

/// What an operation refused, in the words of the command line: what commands can do about it, and no JSON pointers.
/// `object` is what `not found` says, with the command that lists them.
pub(crate) fn refused(error: vault_core::Error, object: &str) -> Failure {
    use vault_core::{Error, Refusal};
    match error {
        Error::Invalid(errors) => {
            let details: Vec<&str> = errors.iter().map(|error| error.detail.as_ref()).collect();
            Failure::new(details.join("; "))
        }
        Error::Refused(Refusal::NotFound) => Failure::new(object),
        Error::Refused(Refusal::NoOrganization) => Failure::new(NO_ORGANIZATION),
        Error::Refused(refusal @ Refusal::OnlyInvited) => Failure::new(format!(
            "{refusal}. Change its role, or withdraw the invitation with `orgvault account delete`"
        )),
        Error::Refused(refusal @ Refusal::AwaitsEnrolment) => Failure::new(format!(
            "{refusal}. Lost or expired enrolment code? `orgvault account re-enrol` prints a new one"
        )),
        Error::Refused(Refusal::SeveralInvitations(count)) => Failure::new(format!(
            "{count} organizations have invited this address: name one with --org; `orgvault account list` shows all"
        )),
        error => error.into(),
    }
}

/// No organization has the name that was given.
pub(crate) const NO_ORGANIZATION: &str = "no organization has this name; `orgvault org list` shows all";
/// No account has the address that was given.
pub(crate) const NO_ACCOUNT: &str = "no account has this address; `orgvault account list` shows all";
/// No integration has the name that was given.
pub(crate) const NO_INTEGRATION: &str = "no integration has this name; `orgvault integration list` shows all";

/// Says what was being done when something failed.
pub(crate) trait Doing<T> {
    /// The same result; a failure begins with `cannot` and `what`, such as `create account ada@example.com`.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E> Doing<T> for Result<T, E>
where
    Failure: From<E>,
{
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| {
            let Failure { message, status } = Failure::from(error);
            Failure { message: format!("cannot {}: {message}", what()), status }
        })
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
