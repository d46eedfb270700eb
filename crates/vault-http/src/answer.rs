//! Responses to successful requests.

use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use bytes::Bytes;
use serde::Serialize;
use std::io;
use vault_core::cursor::Page;
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Creates a response with the JSON text `body`.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = HttpResponse::with_body(status, BoxBody::new(body.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Creates a response with `object` as JSON.
pub(crate) fn object(status: StatusCode, object: &impl Serialize) -> Result<HttpResponse, ProblemResponse> {
    let body = serde_json::to_vec(object).map_err(|error| ProblemResponse::internal().caused_by(error))?;
    Ok(json(status, body))
}

/// Creates a response with a page of the list at `path`, which may contain a query. `item` converts each row. Adds a
/// link to the next page of at most `limit` rows, if there is one.
pub(crate) fn page<T, I: Serialize>(
    path: &str,
    page: &Page<T>,
    limit: usize,
    item: impl Fn(&T) -> I,
) -> Result<HttpResponse, ProblemResponse> {
    let items: Vec<I> = page.items.iter().map(item).collect();
    let mut response = object(StatusCode::OK, &items)?;
    if let Some(cursor) = &page.next {
        // Cursors contain no characters that need escaping.
        let mark = if path.contains('?') { '&' } else { '?' };
        let link = format!("<{path}{mark}limit={limit}&cursor={cursor}>; rel=\"next\"");
        let link = HeaderValue::try_from(link).map_err(|error| ProblemResponse::internal().caused_by(error))?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

/// Same as [`object`], for an object with secrets. Its memory is overwritten after the response is sent.
pub(crate) fn secret(status: StatusCode, object: &impl Serialize) -> Result<HttpResponse, ProblemResponse> {
    let failed = |error: serde_json::Error| ProblemResponse::internal().caused_by(error);
    // Measure first, because a growing buffer would leave copies in freed memory.
    let mut length = Length(0);
    serde_json::to_writer(&mut length, object).map_err(failed)?;
    let mut body = Zeroizing::new(Vec::with_capacity(length.0));
    serde_json::to_writer(&mut *body, object).map_err(failed)?;
    Ok(json(status, Bytes::from_owner(body)))
}

/// Counts written bytes.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds the entity tag of the shown object, which counts the changes by clients.
pub(crate) fn tagged(mut response: HttpResponse, revision: i64) -> Result<HttpResponse, ProblemResponse> {
    let tag = HeaderValue::try_from(format!("\"{revision}\""))
        .map_err(|error| ProblemResponse::internal().caused_by(error))?;
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
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

/// Creates status 202.
pub(crate) fn accepted() -> HttpResponse {
    HttpResponse::new(StatusCode::ACCEPTED)
}

/// Creates status 204.
pub(crate) fn no_content() -> HttpResponse {
    HttpResponse::new(StatusCode::NO_CONTENT)
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
    use actix_web::body::MessageBody as _;

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

    #[test]
    fn secrets_are_serialized_like_other_fields() {
        let object = serde_json::json!({"data": {"secret": "a\u{e4}\"b"}, "list": [1, 2, 3]});
        let bodies: Vec<_> = [object_of(&object), secret(StatusCode::OK, &object).ok()]
            .into_iter()
            .flatten()
            .filter_map(|response| response.into_body().try_into_bytes().ok())
            .collect();
        assert_eq!(bodies.len(), 2);
        assert_eq!(bodies[0], bodies[1]);
    }

    fn object_of(value: &serde_json::Value) -> Option<HttpResponse> {
        object(StatusCode::OK, value).ok()
    }
}
