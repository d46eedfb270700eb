//! Problem documents (RFC 9457).

use crate::CheckItem;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

macro_rules! problem_codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal $code:literal $title:literal;)*) => {
        /// Reasons why a request failed, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ProblemCode { $($(#[$doc])* $name,)* }

        impl ProblemCode {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the HTTP status of the code.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// Returns the code on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Returns the `type` of the problem: a name, not a URL.
            pub const fn urn(self) -> &'static str {
                match self { $(Self::$name => concat!("urn:orgvault:problem:", $code),)* }
            }

            /// Returns the problem in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }
    };
}

problem_codes! {
    /// The request does not have the expected format.
    MalformedRequest = 400 "malformed-request" "The request is malformed";
    /// Wrong address, password or passcode, or a locked or disabled account. The response does not state which.
    InvalidLogin = 401 "invalid-login" "Login failed";
    /// Wrong enrolment code or passcode. The response does not state which.
    InvalidEnrolment = 401 "invalid-enrolment" "Enrolment failed";
    /// The identity token does not authorize a workload.
    UnknownWorkload = 401 "unknown-workload" "Unknown workload";
    /// No access or integration token, or an invalid, expired or revoked one.
    InvalidToken = 401 "invalid-token" "Missing or invalid token";
    /// The role of the account does not permit the request.
    InsufficientRole = 403 "insufficient-role" "The role does not permit this";
    /// The integration has no access to this namespace, which may or may not exist.
    NamespaceNotAllowed = 403 "namespace-not-allowed" "No access to this namespace";
    /// The namespace is frozen until an admin or operator unfreezes it.
    Frozen = 403 "frozen" "The namespace is frozen";
    /// A browser sent the request from a page of another site.
    CrossSite = 403 "cross-site" "Sent by a page of another site";
    /// The path does not exist, or no such credential, account or session is visible to this account.
    NotFound = 404 "not-found" "Not found";
    /// The path does not support this method.
    MethodNotAllowed = 405 "method-not-allowed" "Method not allowed";
    /// The body was not received in time.
    RequestTimeout = 408 "request-timeout" "The request timed out";
    /// The current state of the vault forbids the request.
    Conflict = 409 "conflict" "The request conflicts with the current state";
    /// The e-mail address has an account, in this organization or another.
    AddressInUse = 409 "address-in-use" "The e-mail address is in use";
    /// The namespace has more credentials than one activation may issue.
    NamespaceTooLarge = 409 "namespace-too-large" "The namespace has too many credentials";
    /// No activation listener is present to check credentials.
    NoChecker = 409 "no-checker" "Checks are unavailable";
    /// A precondition of the request is not met.
    PreconditionFailed = 412 "precondition-failed" "A precondition failed";
    /// The body is too large.
    TooLarge = 413 "too-large" "The body is too large";
    /// Path and query are too long.
    AddressTooLong = 414 "address-too-long" "The path is too long";
    /// The body is not plain `application/json`.
    UnsupportedMediaType = 415 "unsupported-media-type" "The media type is not supported";
    /// The host name of the request does not belong to this server.
    MisdirectedRequest = 421 "misdirected-request" "Unknown host name";
    /// A well-formed value is refused.
    RefusedValue = 422 "refused-value" "A value is not accepted";
    /// The idempotency key was used for another request.
    IdempotencyMismatch = 422 "idempotency-mismatch" "The idempotency key was used for another request";
    /// A limit of the organization is reached, such as its number of credentials.
    LimitReached = 422 "limit-reached" "A limit is reached";
    /// The credential failed its check against the storage provider and was not saved.
    NotUsable = 422 "not-usable" "The credential cannot be used";
    /// Too many requests from one network or integration, or too many active activations.
    TooManyRequests = 429 "too-many-requests" "Too many requests";
    /// The headers are too large.
    HeadersTooLarge = 431 "headers-too-large" "The headers are too large";
    /// An error of the server.
    InternalError = 500 "internal-error" "Internal error";
    /// The server is overloaded, or the database is unreachable. Retry later.
    Unavailable = 503 "unavailable" "Temporarily unavailable";
}

impl ProblemCode {
    /// Returns the code with the name `text` on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A problem document. `code` is text, so that clients can read problems that were added later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// `urn:orgvault:problem:<code>`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The problem in a few words.
    pub title: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// Cause and remedy.
    pub detail: Cow<'static, str>,
    /// Code of the problem.
    pub code: Cow<'static, str>,
    /// ID of the request in the server's log.
    pub request_id: String,
    /// All refused fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// Checks that were tried, if a credential cannot be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckItem>,
}

impl Problem {
    /// Creates a problem without refused fields.
    pub fn new(code: ProblemCode, detail: impl Into<Cow<'static, str>>, request_id: impl Into<String>) -> Self {
        Self {
            kind: code.urn().into(),
            title: code.title().into(),
            status: code.status(),
            detail: detail.into(),
            code: code.as_str().into(),
            request_id: request_id.into(),
            errors: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Returns the code of the problem, unless it was added after this version.
    pub fn known_code(&self) -> Option<ProblemCode> {
        ProblemCode::parse(&self.code)
    }
}

/// A refused field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldProblem {
    /// JSON pointer (RFC 6901) to the field. For a query parameter, a slash and its name.
    pub pointer: String,
    /// Code of the violation, for programs.
    pub code: Cow<'static, str>,
    /// Violation and remedy, for users.
    pub detail: Cow<'static, str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_read_back() {
        for code in ProblemCode::ALL {
            assert_eq!(ProblemCode::parse(code.as_str()), Some(*code));
            assert!((400..600).contains(&code.status()), "{code}");
            assert_eq!(code.urn(), format!("urn:orgvault:problem:{code}"));
        }
    }

    #[test]
    fn fields_are_in_documented_order() {
        let problem = Problem::new(ProblemCode::NotFound, "There is nothing here.", "r");
        assert_eq!(
            serde_json::to_string(&problem).unwrap_or_default(),
            r#"{"type":"urn:orgvault:problem:not-found","title":"Not found","status":404,"detail":"There is nothing here.","code":"not-found","request_id":"r"}"#
        );
    }

    #[test]
    fn problem_of_newer_server_is_parsed() {
        let text = r#"{"type":"x","title":"t","status":499,"detail":"d","code":"brand-new","request_id":"r","more":1}"#;
        let problem: Option<Problem> = serde_json::from_str(text).ok();
        assert_eq!(problem.map(|problem| problem.known_code()), Some(None));
    }
}
