//! Errors of the client.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use vault_api::{Problem, ProblemCode};

/// Error of an operation. It contains nothing of the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused or failed, and returned the reason.
    #[error("{}", describe(.problem))]
    Problem {
        /// The reason.
        problem: Box<Problem>,
        /// Time after which the server expects another attempt.
        retry_after: Option<Duration>,
    },
    /// The response is not one of the API, but perhaps of a proxy or another service.
    #[error(
        "unexpected response from {address}: status {status}, not an OrgVault response. Check the URL, and any proxy"
    )]
    Unexpected {
        /// URL of the API, or path of the socket.
        address: String,
        /// Status of the response.
        status: u16,
        /// Time after which the sender expects another attempt.
        retry_after: Option<Duration>,
    },
    /// No connection, or no response.
    #[error("cannot reach {address}")]
    Transport {
        /// URL of the API, or path of the socket.
        address: String,
        /// Reason. An [`std::io::Error`] if the operating system returned it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The request cannot be encoded: the data is not JSON, or a header is invalid.
    #[error("the request cannot be sent: {0}")]
    Request(&'static str),
    /// The CA certificates cannot be read.
    #[error("{} does not contain a valid PEM certificate", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// I/O error, if any.
        #[source]
        source: Option<std::io::Error>,
    },
    /// The client's own certificate and key cannot be read.
    #[error("client certificate and key: {0}")]
    Identity(&'static str),
    /// The address of an activation listener is invalid.
    #[error(
        "invalid URL of an activation listener: expected unix:/path/to/socket or https://host:port/v1. http is accepted \
         for loopback addresses only, such as http://127.0.0.1:8081/v1"
    )]
    ActivationAddress,
    /// The base URL of the API is invalid.
    #[error("invalid base URL: expected scheme, host and base path, such as http://127.0.0.1:8080/v1")]
    BaseUrl,
}

impl ClientError {
    /// Returns the code of the problem, if the server returned one that this version recognizes.
    pub fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Problem { problem, .. } => problem.known_code(),
            _ => None,
        }
    }

    /// Returns the HTTP status, if there was a response.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Problem { problem, .. } => Some(problem.status),
            Self::Unexpected { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the time in the header `Retry-After`, if the response contains a number of seconds there.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem { retry_after, .. } | Self::Unexpected { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Converts an error of the agent, using the operating system's message if there is one.
pub(crate) fn transport(address: &str, error: ureq::Error) -> ClientError {
    let source: Box<dyn std::error::Error + Send + Sync> = match error {
        ureq::Error::Io(error) => Box::new(error),
        ureq::Error::Timeout(_) => Box::new(io::Error::new(io::ErrorKind::TimedOut, "no response in time")),
        ureq::Error::HostNotFound => "the host name cannot be resolved".into(),
        error => Box::new(error),
    };
    ClientError::Transport { address: address.to_owned(), source }
}

fn describe(problem: &Problem) -> String {
    let mut text = match problem.detail.starts_with(&*problem.title) {
        // The detail refers to the errors, which follow.
        _ if !problem.errors.is_empty() => problem.title.to_string(),
        true => problem.detail.to_string(),
        false => format!("{}: {}", problem.title, problem.detail),
    };
    for error in &problem.errors {
        let _ = write!(text, "\n  {}: {}", error.pointer, error.detail); // writing to a String cannot fail
    }
    for check in problem.checks.iter().filter(|check| check.result == "failed") {
        let why = check.remedy.as_deref().or(check.reason.as_deref()).unwrap_or("failed");
        let bucket = check.bucket.iter().map(|bucket| format!(" (bucket {bucket})")).collect::<String>();
        let _ = write!(text, "\n  {}{bucket}: {why}", check.check);
    }
    let _ = write!(text, "\n  request {}", problem.request_id);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_api::CheckItem;

    #[test]
    fn title_repeated_in_detail_is_omitted() {
        let message = |detail: &'static str| describe(&Problem::new(ProblemCode::Frozen, detail, "r"));
        assert_eq!(message("The namespace is frozen. Ask."), "The namespace is frozen. Ask.\n  request r");
        assert_eq!(message("Ask."), "The namespace is frozen: Ask.\n  request r");
    }

    #[test]
    fn failed_check_is_reported_with_remedy() {
        let mut problem = Problem::new(ProblemCode::NotUsable, "See `checks`.", "r");
        let check = |check: &'static str, result: &'static str| CheckItem {
            check: check.into(),
            result: result.into(),
            bucket: None,
            reason: Some("unknown-key".into()),
            remedy: Some("Save the current key.".into()),
        };
        problem.checks = vec![check("settings", "passed"), check("authenticate", "failed")];
        assert!(describe(&problem).ends_with("\n  authenticate: Save the current key.\n  request r"));
    }
}
