//! Responses to successful requests, and their links.

use crate::problem::ProblemResponse;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::web::Json;
use bytes::Bytes;
use serde::Serialize;
use vault_core::cursor::Page;
use vault_core::time::Timestamp;

/// The response of a handler: JSON with status 200.
pub(crate) type JsonResult<T> = Result<Json<T>, ProblemResponse>;
/// The response of a handler: JSON with another status.
pub(crate) type JsonStatusResult<T> = Result<(Json<T>, StatusCode), ProblemResponse>;
/// The response of a handler: nothing, with status 204.
pub(crate) type NoContent = Result<HttpResponse, ProblemResponse>;

/// Creates JSON with status 200.
pub(crate) fn ok<T>(object: T) -> JsonResult<T> {
    Ok(Json(object))
}

pub(crate) fn created<T>(object: T) -> JsonStatusResult<T> {
    Ok((Json(object), StatusCode::CREATED))
}

/// Creates JSON with status 202.
pub(crate) fn accepted<T>(object: T) -> JsonStatusResult<T> {
    Ok((Json(object), StatusCode::ACCEPTED))
}

/// Creates status 204.
pub(crate) fn no_content((): ()) -> HttpResponse {
    HttpResponse::NoContent().finish()
}

/// Creates a response with the JSON text `body`.
pub(crate) fn json(body: impl Into<Bytes>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body.into())
}

/// Adds a header whose value the server has created.
pub(crate) fn with(
    mut response: HttpResponse,
    name: HeaderName,
    value: String,
) -> Result<HttpResponse, ProblemResponse> {
    let value = HeaderValue::try_from(value).map_err(|error| ProblemResponse::internal().caused_by(error))?;
    response.headers_mut().insert(name, value);
    Ok(response)
}

/// Creates a response with a page of the list at `path`. `item` converts each row.
pub(crate) fn page<T, I: Serialize>(
    path: &str,
    page: &Page<T>,
    limit: usize,
    item: impl Fn(&T) -> I,
) -> Result<HttpResponse, ProblemResponse> {
    let response = HttpResponse::Ok().json(page.items.iter().map(item).collect::<Vec<_>>());
    linked(response, path, page.next.as_deref(), limit)
}

/// Adds a link to the `next` page of at most `limit` rows of the list at `path`, which may contain a query.
pub(crate) fn linked(
    response: HttpResponse,
    path: &str,
    next: Option<&str>,
    limit: usize,
) -> Result<HttpResponse, ProblemResponse> {
    // Cursors contain no characters that need escaping.
    let mark = if path.contains('?') { '&' } else { '?' };
    match next {
        Some(cursor) => {
            with(response, header::LINK, format!("<{path}{mark}limit={limit}&cursor={cursor}>; rel=\"next\""))
        }
        None => Ok(response),
    }
}

/// Adds the entity tag of the shown object, which counts the changes by clients.
pub(crate) fn tagged(response: HttpResponse, revision: i64) -> Result<HttpResponse, ProblemResponse> {
    with(response, header::ETAG, format!("\"{revision}\""))
}

/// Adds the entity tag of the `shown` revision, unless the request `made` an earlier one. With the tag of a later
/// change, a client would overwrite that change unknowingly.
pub(crate) fn tagged_as_made(
    response: HttpResponse,
    made: Option<i64>,
    shown: i64,
) -> Result<HttpResponse, ProblemResponse> {
    if made.is_none_or(|made| made == shown) { tagged(response, shown) } else { Ok(response) }
}

/// Formats `time` as RFC 3339 in UTC, in seconds. Falls back to the epoch for a time outside the supported range.
pub(crate) fn time_text(time: Timestamp) -> String {
    time.to_rfc3339().unwrap_or_else(|| EPOCH.to_owned())
}

/// The text of a time outside the supported range.
pub(crate) const EPOCH: &str = "1970-01-01T00:00:00Z";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entity_tag_identifies_its_change() {
        let tag = |made, shown| {
            let response = tagged_as_made(HttpResponse::new(StatusCode::OK), made, shown).ok()?;
            Some(response.headers().get(header::ETAG)?.as_bytes().to_vec())
        };
        assert_eq!(tag(Some(11), 11), Some(b"\"11\"".to_vec()));
        assert_eq!(tag(Some(11), 13), None, "another change came after it");
        assert_eq!(tag(None, 13), Some(b"\"13\"".to_vec()), "it changed nothing");
    }
}
