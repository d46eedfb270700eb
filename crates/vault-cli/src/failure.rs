//! The failure of a command.

use crate::client::login::Profile;
use std::fmt;
use std::io;
use std::process::ExitCode;
use vault_core::field::FieldError;

/// An error message and its exit status.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// Creates a failure with status 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 1 }
    }

    /// Creates a usage error with status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 2 }
    }

    /// Creates a failure with a specific status.
    pub(crate) fn with_status(message: impl Into<String>, status: u8) -> Self {
        Self { message: message.into(), status }
    }

    /// Creates the failure to listen on `place`, which `flag` configures.
    pub fn cannot_listen(flag: &str, place: impl fmt::Display, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => "address in use".to_owned(),
            _ => error.to_string(),
        };
        Self::new(format!("cannot listen on {place}: {reason}. Choose another with {flag}"))
    }

    /// Replaces status 1 by `status`, and keeps any other.
    #[must_use]
    pub(crate) fn or_status(self, status: u8) -> Self {
        Self { status: if self.status == 1 { status } else { self.status }, ..self }
    }

    /// Adds a note about the circumstances to the first line.
    #[must_use]
    pub fn noting(mut self, note: impl fmt::Display) -> Self {
        let end = self.message.find('\n').unwrap_or(self.message.len());
        self.message.insert_str(end, &format!(" ({note})"));
        self
    }

    /// Names the profile, unless it is the default or the message names it.
    #[must_use]
    pub fn with_profile(self, profile: &Profile) -> Self {
        let name = profile.as_str();
        match name == Profile::DEFAULT || self.message.contains(&format!("profile {name}")) {
            true => self,
            false => self.noting(format!("with profile {name}")),
        }
    }

    /// Returns the exit status of the program.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Converts an error of a vault operation: names flags instead of JSON pointers, and adds the next step. `object` is
/// the message for an object that does not exist.
pub fn refused(error: vault_core::Error, object: &str) -> Failure {
    use vault_core::{Error, Refusal};
    match error {
        Error::Invalid(errors) => {
            Failure::new(rejected(errors.iter().map(|error| (flag_of(&error.pointer), &*error.detail))))
        }
        Error::Refused(Refusal::NotFound) => Failure::new(object),
        Error::Refused(Refusal::NoOrganization) => Failure::new(NO_ORGANIZATION),
        Error::Refused(refusal @ Refusal::OnlyInvited) => Failure::new(format!(
            "{refusal}. Change its role, or withdraw the invitation with `orgvault account delete`"
        )),
        Error::Refused(Refusal::SeveralInvitations(count)) => Failure::new(format!(
            "{count} organizations have invited this address: name one with --org; `orgvault account list` shows all"
        )),
        error => error.into(),
    }
}

/// Returns the flag or data field for a JSON pointer of the HTTP API.
pub fn flag_of(pointer: &str) -> String {
    let Some(path) = pointer.strip_prefix('/') else { return pointer.to_owned() };
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    match (first, rest) {
        ("data", "") => "the data".to_owned(),
        ("data", field) => format!("data field {}", field.replace('/', ".").replace("~1", "/").replace("~0", "~")),
        ("labels", _) => "--label".to_owned(),
        ("namespaces", _) => "--namespace".to_owned(),
        ("events", _) => "--event".to_owned(),
        ("trusts" | "issuer" | "claims" | "max_lifetime", _) => "--trust".to_owned(),
        ("to", _) => "--email".to_owned(),
        ("text", "") => "TEXT".to_owned(),
        ("organization", "") => "NAME".to_owned(),
        ("password" | "new_password", _) => "--password-file".to_owned(),
        (name, _) => format!("--{}", name.replace('_', "-")),
    }
}

/// Joins errors of flags and fields into one line.
pub fn rejected<'a>(errors: impl IntoIterator<Item = (String, &'a str)>) -> String {
    let sentence = |(flag, detail): (String, &str)| {
        let is_predicate = ["must ", "may ", "is ", "has ", "cannot "].iter().any(|verb| detail.starts_with(verb));
        format!("{flag}{} {detail}", if is_predicate { "" } else { ":" })
    };
    errors.into_iter().map(sentence).collect::<Vec<_>>().join("; ")
}

/// Creates a usage error from an invalid value.
pub fn wrong_flag(error: &FieldError) -> Failure {
    Failure::usage(rejected([(flag_of(&error.pointer), &*error.detail)]))
}

/// Message for an unknown organization name.
pub const NO_ORGANIZATION: &str = "no organization has this name; `orgvault org list` shows all";
/// Message for an unknown account address.
pub const NO_ACCOUNT: &str = "no account has this address; `orgvault account list` shows all";
/// Message for an unknown integration name.
pub const NO_INTEGRATION: &str = "no integration has this name; `orgvault integration list` shows all";

/// Adds the failed operation to an error.
pub trait Doing<T> {
    /// Prefixes an error with `cannot` and `what`, such as `create account ada@example.com`.
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

/// Converts any error, including its causes, to one line.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_values_name_their_flags() {
        for (pointer, flag) in [
            ("/namespace", "--namespace"),
            ("/namespaces/1", "--namespace"),
            ("/type", "--type"),
            ("/expires_at", "--expires-at"),
            ("/labels/team", "--label"),
            ("/data", "the data"),
            ("/data/bucket", "data field bucket"),
            ("/data/headers/a~1b", "data field headers.a/b"),
            ("/trusts/0/claims/~1sub", "--trust"),
            ("/to", "--email"),
            ("/text", "TEXT"),
            ("--issuer", "--issuer"),
        ] {
            assert_eq!(flag_of(pointer), flag, "{pointer}");
        }
        let errors = [("/namespace", "may contain only a-z"), ("/data/x", "unknown field")];
        let text = rejected(errors.map(|(pointer, detail)| (flag_of(pointer), detail)));
        assert_eq!(text, "--namespace may contain only a-z; data field x: unknown field");
    }
}
