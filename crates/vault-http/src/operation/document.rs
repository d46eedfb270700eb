//! Request bodies in JSON.

use crate::body::{Body, Incoming};
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{content, query, wire};
use serde::de::DeserializeOwned;
use vault_core::field::{FieldCode, FieldError};
use vault_core::time::Timestamp;

/// Reads a request that consists only of a body: no query, and a `T` without further validation.
pub(super) async fn read<T: DeserializeOwned>(call: &Call<'_>, body: &mut Incoming) -> Result<T, ProblemResponse> {
    query::none(call.query())?;
    content::check(call.headers())?;
    parse(&body.read().await?)
}

/// Reads an optional body.
pub(super) async fn optional(call: &Call<'_>, body: &mut Incoming) -> Result<Option<Body>, ProblemResponse> {
    if content::is_announced(call.headers()) {
        content::check(call.headers())?;
        return Ok(Some(body.read().await?).filter(|body| !body.is_empty()));
    }
    match body.read().await? {
        nothing if nothing.is_empty() => Ok(None),
        // The content type is missing.
        _ => Err(content::not_json()),
    }
}

/// Parses a `T` without further validation.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ProblemResponse> {
    let (request, violations) = wire::read(body)?;
    violations.finish(Some(request))
}

/// Parses an optional time at `pointer`, rounded down to the second.
pub(crate) fn optional_time(text: Option<&str>, pointer: &str) -> Result<Option<Timestamp>, FieldError> {
    let Some(text) = text else { return Ok(None) };
    let detail = "must be a time in RFC 3339, such as 2026-11-20T12:00:00Z";
    let malformed = || FieldError::new(pointer, FieldCode::Malformed, detail);
    Timestamp::from_rfc3339(text).map(|time| Some(time.floor_to_second())).ok_or_else(malformed)
}
