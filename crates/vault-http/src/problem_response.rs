//! Errors of requests, and their conversion to problem documents.

use crate::checks;
use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{ConnectionType, StatusCode};
use std::borrow::Cow;
use std::fmt;
use vault_api::{CheckItem, FieldProblem, Problem, ProblemCode};
use vault_core::activation::ActivationTtl;
use vault_core::check::CheckReport;
use vault_core::field::{FieldError, ViolationKind};

/// Header with the media types of a patch (RFC 5789, section 3.1).
pub(crate) const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");
/// Value of `Accept-Patch`.
pub(crate) const PATCH_TYPES: &str = "application/merge-patch+json, application/json";

/// The value of `WWW-Authenticate` (RFC 6750, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Challenge {
    /// The request contains no token.
    Plain,
    /// The token is invalid.
    InvalidToken,
    /// The token is valid, but its role does not permit the operation.
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

/// A rejection or failure, before it gets a request ID. Contains no value of the request.
#[derive(Debug)]
pub(crate) struct ProblemResponse(Box<Parts>);

#[derive(Debug)]
struct Parts {
    code: ProblemCode,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    checks: Vec<CheckItem>,
    /// Headers in addition to the content type.
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

    /// Creates status 400.
    pub(crate) fn malformed(detail: &'static str) -> Self {
        Self::new(ProblemCode::MalformedRequest, detail)
    }

    /// Creates status 400 if one of the errors concerns the format, else 422. `errors` must not be empty.
    pub(crate) fn fields(errors: Vec<FieldError>) -> Self {
        let form = errors.iter().any(|error| error.code.kind() == ViolationKind::Form);
        let mut problem_response = if form {
            Self::new(ProblemCode::MalformedRequest, "The request is malformed; see `errors`.")
        } else {
            Self::new(ProblemCode::RefusedValue, "Some values are not accepted; see `errors`.")
        };
        problem_response.0.errors = errors;
        problem_response
    }

    /// Creates status 401 for a request without a token.
    pub(crate) fn no_token() -> Self {
        Self::unauthorized(ProblemCode::InvalidToken, Challenge::Plain, "Send `Authorization: Bearer <access token>`.")
    }

    /// Creates status 401 for an invalid access token.
    pub(crate) fn invalid_token() -> Self {
        let detail = "The access token is malformed, expired or revoked. Log in again.";
        Self::unauthorized(ProblemCode::InvalidToken, Challenge::InvalidToken, detail)
    }

    /// Creates status 401 for a request without an integration token.
    pub(crate) fn no_integration_token() -> Self {
        let detail = "Send `Authorization: Bearer <integration token>`.";
        Self::unauthorized(ProblemCode::InvalidToken, Challenge::Plain, detail)
    }

    /// Creates status 401 for an invalid integration token.
    pub(crate) fn invalid_integration_token() -> Self {
        let detail = "The integration token is malformed, replaced or expired, or its integration or organization is \
                      disabled. Ask an admin.";
        Self::unauthorized(ProblemCode::InvalidToken, Challenge::InvalidToken, detail)
    }

    /// Creates status 401 for an identity token without an authorized workload. This is the only detail that may
    /// contain values of the request: the token's claims.
    pub(crate) fn unknown_workload(detail: String) -> Self {
        Self::unauthorized(ProblemCode::UnknownWorkload, Challenge::InvalidToken, detail)
    }

    /// Creates status 401 for a rejected login.
    pub(crate) fn invalid_login() -> Self {
        let detail = "Wrong e-mail, password or passcode, or the account is locked or disabled.";
        Self::unauthorized(ProblemCode::InvalidLogin, Challenge::Plain, detail)
    }

    /// Replaces the detail of a rejected login, for operations that require re-authentication.
    pub(crate) fn of_own_proof(self) -> Self {
        self.reported_as_login("Wrong password or passcode, or logins to your account are locked.")
    }

    /// Replaces the detail of a rejected login, for operations that require a passcode of the new secret.
    pub(crate) fn of_new_passcode(self) -> Self {
        self.reported_as_login("Wrong passcode. Use the passcode that the authenticator shows for the new secret.")
    }

    /// Replaces the detail if this is a rejected login.
    fn reported_as_login(self, detail: &'static str) -> Self {
        if self.0.code == ProblemCode::InvalidLogin { self.saying(detail) } else { self }
    }

    /// Creates status 401 for a rejected enrolment.
    pub(crate) fn invalid_enrolment() -> Self {
        let detail = "Invalid, used or expired enrolment code, or wrong passcode. If you requested a secret twice, use the \
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

    /// Creates status 403 for a role without the permission.
    pub(crate) fn insufficient_role() -> Self {
        Self::new(ProblemCode::InsufficientRole, "Ask an admin of your organization.")
            .challenging(Challenge::InsufficientScope)
    }

    /// Creates status 403 for a namespace that an integration may not activate, whether or not it exists.
    pub(crate) fn namespace_not_allowed() -> Self {
        let detail = "The integration has no access to this namespace. Ask an admin.";
        Self::new(ProblemCode::NamespaceNotAllowed, detail).challenging(Challenge::InsufficientScope)
    }

    /// Creates status 404. The response is the same for unknown paths and unknown IDs.
    pub(crate) fn not_found() -> Self {
        Self::new(ProblemCode::NotFound, "No such path or id. Check the base path (default /v1), the path and the id.")
    }

    /// Creates status 405.
    pub(crate) fn method_not_allowed(allow: &str) -> Self {
        let refusal = Self::new(ProblemCode::MethodNotAllowed, "See the `Allow` header.");
        match HeaderValue::from_str(allow) {
            Ok(allow) => refusal.with(header::ALLOW, allow),
            Err(error) => Self::internal().caused_by(error),
        }
    }

    /// Creates status 429 for an organization that invited too many addresses that are already in use.
    pub(crate) fn too_many_invitations(retry_after: u32) -> Self {
        let detail = "Your organization sent 20 invitations to addresses in use within an hour. Further invitations are \
                      refused. Retry after the time in `Retry-After`.";
        Self::waiting(detail, retry_after)
    }

    /// Creates status 429 for an operation with an hourly limit.
    pub(crate) fn too_often(retry_after: u32) -> Self {
        let detail = "Too many requests of this kind within an hour. Retry after the time in `Retry-After`.";
        Self::waiting(detail, retry_after)
    }

    /// Creates status 429 for a network that exceeds its rate.
    pub(crate) fn too_many_requests(retry_after: u32) -> Self {
        Self::waiting("Too many requests from your network. Retry after the time in `Retry-After`.", retry_after)
    }

    /// Creates status 429 for an integration that exceeds its rate.
    pub(crate) fn too_many_openings(retry_after: u32) -> Self {
        let detail = "Too many requests from this integration. Retry after the time in `Retry-After`.";
        Self::waiting(detail, retry_after)
    }

    /// Creates status 429 for an integration with the maximum number of active activations.
    pub(crate) fn too_many_live() -> Self {
        let detail = "The integration's limit of active activations is reached. End some, or wait until some expire.";
        Self::waiting(detail, ActivationTtl::MIN)
    }

    /// Creates status 429 for an integration or organization with too many storage requests in progress.
    pub(crate) fn too_many_in_progress() -> Self {
        const RETRY_AFTER: u32 = 5; // when the first of them may have finished, in seconds
        Self::waiting("Too many storage requests in progress. Retry later.", RETRY_AFTER)
    }

    /// Creates status 429 for an account or organization with too many requests in progress.
    pub(crate) fn too_many_under_way() -> Self {
        const RETRY_AFTER: u32 = 1; // most requests take milliseconds
        let detail = "Your account or organization has too many requests in progress. Wait for their responses.";
        Self::waiting(detail, RETRY_AFTER)
    }

    fn waiting(detail: &'static str, retry_after: u32) -> Self {
        Self::new(ProblemCode::TooManyRequests, detail).retried_after(retry_after)
    }

    /// Creates status 422 for a credential that failed its check before it was saved.
    pub(crate) fn not_usable(report: &CheckReport) -> Self {
        let detail = "The credential failed its check and was not saved; see `checks`.";
        let mut problem_response = Self::new(ProblemCode::NotUsable, detail);
        problem_response.0.checks = checks::items(report);
        problem_response
    }

    /// Creates status 409.
    pub(crate) fn conflict(detail: &'static str) -> Self {
        Self::new(ProblemCode::Conflict, detail)
    }

    /// Creates status 503.
    pub(crate) fn unavailable(retry_after: u32) -> Self {
        let detail = "The server is overloaded or cannot reach its database. Retry after the time in `Retry-After`.";
        Self::new(ProblemCode::Unavailable, detail).retried_after(retry_after)
    }

    /// Creates status 500.
    pub(crate) fn internal() -> Self {
        Self::new(
            ProblemCode::InternalError,
            "The server failed. Operators find the cause in the log under this `request_id`.",
        )
    }

    /// Replaces the detail.
    pub(crate) fn saying(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// Adds the accepted media types of a patch.
    pub(crate) fn naming_patch_types(self) -> Self {
        self.saying("Send `Content-Type: application/merge-patch+json`, without `Content-Encoding`.")
            .with(ACCEPT_PATCH, HeaderValue::from_static(PATCH_TYPES))
    }

    /// Adds the cause for the log. It is never part of the response.
    pub(crate) fn caused_by(mut self, cause: impl fmt::Display) -> Self {
        self.0.cause = Some(cause.to_string());
        self
    }

    /// Closes the connection after the response.
    pub(crate) fn closing(mut self) -> Self {
        self.0.closing = true;
        self
    }

    /// Returns whether the response contains `Retry-After`.
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

    /// Converts the problem to the response to the request with this ID.
    pub(crate) fn into_response(self, request_id: &str) -> HttpResponse {
        let parts = *self.0;
        if let Some(cause) = &parts.cause {
            tracing::error!(code = parts.code.as_str(), cause = ?cause, "request failed");
        }
        let mut problem = Problem::new(parts.code, parts.detail, request_id);
        problem.checks = parts.checks;
        problem.errors = parts.errors.into_iter().map(field_problem).collect();
        // A problem contains only values that can be serialized.
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
