//! Everything that can go wrong with a request, on its way to a problem document.

use crate::checks;
use crate::content::{ACCEPT_PATCH, PATCH_TYPES};
use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{ConnectionType, StatusCode};
use std::borrow::Cow;
use std::fmt;
use vault_api::{CheckItem, FieldProblem, Problem, ProblemCode};
use vault_core::activation::ActivationTtl;
use vault_core::check::CheckReport;
use vault_core::field::{FieldError, FlawKind};

/// What `WWW-Authenticate` says (RFC 6750 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Challenge {
    /// No credentials were sent.
    Plain,
    /// The token does not work.
    InvalidToken,
    /// The token works, but its role does not permit this.
    InsufficientScope,
}

impl Challenge {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "Bearer",
            Self::InvalidToken => "Bearer error=\"invalid_token\"",
            Self::InsufficientScope => "Bearer error=\"insufficient_scope\"",
        }
    }
}

/// A refusal or a failure, before it has a request id. Holds no value of the request.
#[derive(Debug)]
pub(crate) struct ProblemResponse(Box<Parts>);

#[derive(Debug)]
struct Parts {
    code: ProblemCode,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    checks: Vec<CheckItem>,
    /// Besides the content type.
    headers: Vec<(HeaderName, HeaderValue)>,
    closing: bool,
    cause: Option<String>,
}

impl ProblemResponse {
    pub(crate) fn new(code: ProblemCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Parts {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            checks: Vec::new(),
            headers: Vec::new(),
            closing: false,
            cause: None,
        }))
    }

    /// 400
    pub(crate) fn malformed(detail: &'static str) -> Self {
        Self::new(ProblemCode::MalformedRequest, detail)
    }

    /// 400 if any of the flaws is one of form, else 422; `errors` is not empty.
    pub(crate) fn fields(errors: Vec<FieldError>) -> Self {
        let form = errors.iter().any(|error| error.code.kind() == FlawKind::Form);
        let mut problem_response = if form {
            Self::new(ProblemCode::MalformedRequest, "The request is malformed; see `errors`.")
        } else {
            Self::new(ProblemCode::RefusedValue, "Some values are not accepted; see `errors`.")
        };
        problem_response.0.errors = errors;
        problem_response
    }

    /// 401 where no credentials were sent.
    pub(crate) fn no_token() -> Self {
        Self::unauthorized(ProblemCode::InvalidToken, Challenge::Plain, "Send `Authorization: Bearer <access token>`.")
    }

    /// 401 for a token that does not work.
    pub(crate) fn invalid_token() -> Self {
        let detail = "The access token is malformed, expired or revoked. Log in again.";
        Self::unauthorized(ProblemCode::InvalidToken, Challenge::InvalidToken, detail)
    }

    /// 401 where no integration token was sent.
    pub(crate) fn no_integration_token() -> Self {
        let detail = "Send `Authorization: Bearer <integration token>`.";
        Self::unauthorized(ProblemCode::InvalidToken, Challenge::Plain, detail)
    }

    /// 401 for an integration token that does not work.
    pub(crate) fn invalid_integration_token() -> Self {
        let detail = "The integration token is malformed, replaced or expired, or its integration or organization is \
                      disabled. Ask an admin.";
        Self::unauthorized(ProblemCode::InvalidToken, Challenge::InvalidToken, detail)
    }

    /// 401 for an identity token that proves no workload that may act. What it says of the token's claims is the one exception
    /// from that no value of a request is told.
    pub(crate) fn unknown_workload(detail: String) -> Self {
        Self::unauthorized(ProblemCode::UnknownWorkload, Challenge::InvalidToken, detail)
    }

    /// 401 for a login.
    pub(crate) fn invalid_login() -> Self {
        let detail = "Wrong e-mail, password or passcode, or the account is locked or disabled.";
        Self::unauthorized(ProblemCode::InvalidLogin, Challenge::Plain, detail)
    }

    /// The problem_response of an operation that asks somebody who is logged in for password and passcode.
    pub(crate) fn of_own_proof(self) -> Self {
        self.told_as_login("Wrong password or passcode, or logins to your account are locked.")
    }

    /// The problem_response of an operation that asks somebody who is logged in for a passcode of the new secret.
    pub(crate) fn of_new_passcode(self) -> Self {
        self.told_as_login("Wrong passcode. Use the passcode that the authenticator shows for the new secret.")
    }

    /// With this detail, if it is that of a refused login.
    fn told_as_login(self, detail: &'static str) -> Self {
        if self.0.code == ProblemCode::InvalidLogin { self.saying(detail) } else { self }
    }

    /// 401 for an enrolment.
    pub(crate) fn invalid_enrolment() -> Self {
        let detail = "Invalid, used or expired enrolment code, or wrong passcode. If you asked for a secret twice, use the \
                      latest.";
        Self::unauthorized(ProblemCode::InvalidEnrolment, Challenge::Plain, detail)
    }

    fn unauthorized(code: ProblemCode, challenge: Challenge, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code, detail).challenging(challenge)
    }

    fn challenging(self, challenge: Challenge) -> Self {
        self.with(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge.as_str()))
    }

    fn retried_after(self, seconds: u32) -> Self {
        self.with(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// 403
    pub(crate) fn insufficient_role() -> Self {
        Self::new(ProblemCode::InsufficientRole, "Ask an admin of your organization.")
            .challenging(Challenge::InsufficientScope)
    }

    /// 403 for a namespace outside of what an integration may activate, whether it exists or not.
    pub(crate) fn namespace_not_allowed() -> Self {
        let detail = "The integration has no access to this namespace. Ask an admin.";
        Self::new(ProblemCode::NamespaceNotAllowed, detail).challenging(Challenge::InsufficientScope)
    }

    /// 404, the same for unknown paths and unknown ids.
    pub(crate) fn not_found() -> Self {
        Self::new(ProblemCode::NotFound, "No such path or id. Check the base path (default /v1), the path and the id.")
    }

    /// 405
    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        Self::new(ProblemCode::MethodNotAllowed, "See the `Allow` header.")
            .with(header::ALLOW, HeaderValue::from_static(allow))
    }

    /// 429 for an organization whose invitations met too many addresses in use.
    pub(crate) fn too_many_invitations(retry_after: u32) -> Self {
        let detail = "Your organization sent 20 invitations to addresses in use within an hour. Further invitations are \
                      refused. Retry after the time in `Retry-After`.";
        Self::waiting(detail, retry_after)
    }

    /// 429 for what may be done so often an hour.
    pub(crate) fn too_often(retry_after: u32) -> Self {
        let detail = "Too many requests of this kind within an hour. Retry after the time in `Retry-After`.";
        Self::waiting(detail, retry_after)
    }

    /// 429 for a network.
    pub(crate) fn too_many_requests(retry_after: u32) -> Self {
        Self::waiting("Too many requests from your network. Retry after the time in `Retry-After`.", retry_after)
    }

    /// 429 for an integration.
    pub(crate) fn too_many_openings(retry_after: u32) -> Self {
        let detail = "Too many requests from this integration. Retry after the time in `Retry-After`.";
        Self::waiting(detail, retry_after)
    }

    /// 429 for an integration with as many live activations as it may have.
    pub(crate) fn too_many_live() -> Self {
        let detail = "The integration's limit of live activations is reached. End some, or wait until some expire.";
        Self::waiting(detail, ActivationTtl::MIN)
    }

    /// 429 for an integration or organization with too many storage requests in progress.
    pub(crate) fn too_many_in_progress() -> Self {
        const RETRY_AFTER: u32 = 5; // when the first of them may be done, in seconds
        Self::waiting("Too many storage requests in progress. Retry later.", RETRY_AFTER)
    }

    /// 429 for an account or an organization with too many requests in progress.
    pub(crate) fn too_many_under_way() -> Self {
        const RETRY_AFTER: u32 = 1; // most requests take milliseconds
        let detail = "Your account or organization has too many requests in progress. Wait for their answers.";
        Self::waiting(detail, RETRY_AFTER)
    }

    fn waiting(detail: &'static str, retry_after: u32) -> Self {
        Self::new(ProblemCode::TooManyRequests, detail).retried_after(retry_after)
    }

    /// 422 for a credential that was tried out before it was to be saved.
    pub(crate) fn not_usable(report: &CheckReport) -> Self {
        let detail = "The credential failed its check and was not saved; see `checks`.";
        let mut problem_response = Self::new(ProblemCode::NotUsable, detail);
        problem_response.0.checks = checks::items(report);
        problem_response
    }

    /// 409
    pub(crate) fn conflict(detail: &'static str) -> Self {
        Self::new(ProblemCode::Conflict, detail)
    }

    /// 503
    pub(crate) fn unavailable(retry_after: u32) -> Self {
        let detail = "The server is overloaded or cannot reach its database. Retry after the time in `Retry-After`.";
        Self::new(ProblemCode::Unavailable, detail).retried_after(retry_after)
    }

    /// 500
    pub(crate) fn internal() -> Self {
        Self::new(
            ProblemCode::InternalError,
            "The server failed. Operators find the cause in the log under this `request_id`.",
        )
    }

    /// With this detail.
    pub(crate) fn saying(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// With the media types that a patch may have.
    pub(crate) fn naming_patch_types(self) -> Self {
        self.saying("Send `Content-Type: application/merge-patch+json`, without `Content-Encoding`.")
            .with(ACCEPT_PATCH, HeaderValue::from_static(PATCH_TYPES))
    }

    /// With what the log is to say about it. Never part of the answer.
    pub(crate) fn caused_by(mut self, cause: impl fmt::Display) -> Self {
        self.0.cause = Some(cause.to_string());
        self
    }

    /// The connection ends with the answer.
    pub(crate) fn closing(mut self) -> Self {
        self.0.closing = true;
        self
    }

    /// Whether the client is asked to come back later.
    pub(crate) fn asks_to_wait(&self) -> bool {
        self.0.headers.iter().any(|(name, _)| *name == header::RETRY_AFTER)
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> ProblemCode {
        self.0.code
    }

    #[cfg(test)]
    pub(crate) fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// The answer to the request of this id.
    pub(crate) fn into_response(self, request_id: &str) -> HttpResponse {
        let parts = *self.0;
        if let Some(cause) = &parts.cause {
            tracing::error!(code = parts.code.as_str(), cause = ?cause, "request failed");
        }
        let mut problem = Problem::new(parts.code, parts.detail, request_id);
        problem.checks = parts.checks;
        problem.errors = parts.errors.into_iter().map(field_problem).collect();
        // A problem holds nothing that cannot be JSON.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let status = StatusCode::from_u16(parts.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = HttpResponse::with_body(status, BoxBody::new(body));
        if parts.closing {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        for (name, value) in parts.headers {
            headers.insert(name, value);
        }
        response
    }
}

fn field_problem(error: FieldError) -> FieldProblem {
    FieldProblem { pointer: error.pointer, code: error.code.as_str().into(), detail: error.detail }
}
