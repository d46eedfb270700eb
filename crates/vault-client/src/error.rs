//! What can go wrong.

use std::fmt::Write as _;
use std::path::PathBuf;
use vault_api::{Problem, ProblemCode};

/// An operation did not succeed. Holds nothing of the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused or failed, and said why.
    #[error("{}", describe(.0))]
    Problem(Box<Problem>),
    /// An answer that is not the interface's: a proxy's, perhaps, or of another service.
    #[error("unexpected answer of status {status}: is this the address of an OrgVault interface?")]
    Unexpected {
        /// The answer's status.
        status: u16,
    },
    /// No answer came.
    #[error("no answer from the server")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The request cannot be written: data that is not JSON, or a header that cannot be one.
    #[error("the request cannot be sent: {0}")]
    Request(&'static str),
    /// The certificates to trust cannot be read.
    #[error("{path:?} holds no certificate in PEM that can be read")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why not, if there is more to say.
        #[source]
        source: Option<std::io::Error>,
    },
    /// The client's own certificate and key cannot be read.
    #[error("the client's certificate and key: {0}")]
    Identity(&'static str),
    /// Not an address of a listener of activations.
    #[error(
        "not an address of activations: give unix:/path/to/socket, or https://host:port/v1; http only to an address of \
         this machine, such as http://127.0.0.1:8081/v1"
    )]
    ActivationAddress,
    /// Not an address of an interface.
    #[error("not the address of an interface: give scheme, host and base path, such as http://127.0.0.1:8080/v1")]
    BaseUrl,
}

impl ClientError {
    /// The problem's code, if the server named one that is known here.
    pub fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Problem(problem) => problem.known_code(),
            _ => None,
        }
    }
}

impl From<ureq::Error> for ClientError {
    fn from(error: ureq::Error) -> Self {
        Self::Transport(Box::new(error))
    }
}

fn describe(problem: &Problem) -> String {
    let mut text = format!("{}: {}", problem.title, problem.detail);
    for error in &problem.errors {
        let _ = write!(text, "\n  {}: {}", error.pointer, error.detail); // a String takes everything
    }
    let _ = write!(text, "\n  request {}", problem.request_id);
    text
}
