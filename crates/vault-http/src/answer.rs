//! Answers to requests that succeeded.

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

/// An answer whose body is the JSON text `body`.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = HttpResponse::with_body(status, BoxBody::new(body.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer whose body is `object` as JSON.
pub(crate) fn object(status: StatusCode, object: &impl Serialize) -> Result<HttpResponse, ProblemResponse> {
    sized(status, object, 128)
}

/// The same for an object that takes about `size` bytes.
pub(crate) fn sized(status: StatusCode, object: &impl Serialize, size: usize) -> Result<HttpResponse, ProblemResponse> {
    let mut body = Vec::with_capacity(size);
    serde_json::to_writer(&mut body, object).map_err(|error| ProblemResponse::internal().caused_by(error))?;
    Ok(json(status, body))
}

/// A page of the list at `path`, which may have a query, each row as `item` shows it; with a link to the next page, of at most `limit` rows, if
/// there is one.
pub(crate) fn page<T, I: Serialize>(
    path: &str,
    page: &Page<T>,
    limit: usize,
    item: impl Fn(&T) -> I,
) -> Result<HttpResponse, ProblemResponse> {
    let items: Vec<I> = page.items.iter().map(item).collect();
    let mut response = object(StatusCode::OK, &items)?;
    if let Some(cursor) = &page.next {
        // A cursor holds nothing that a query would have to escape.
        let mark = if path.contains('?') { '&' } else { '?' };
        let link = format!("<{path}{mark}limit={limit}&cursor={cursor}>; rel=\"next\"");
        let link = HeaderValue::try_from(link).map_err(|error| ProblemResponse::internal().caused_by(error))?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

/// The same as [`object`] for an object that holds secrets: in memory that is wiped once it is sent.
pub(crate) fn secret(status: StatusCode, object: &impl Serialize) -> Result<HttpResponse, ProblemResponse> {
    let failed = |error: serde_json::Error| ProblemResponse::internal().caused_by(error);
    // Measured first: a buffer that grows leaves its content behind unwiped.
    let mut length = Length(0);
    serde_json::to_writer(&mut length, object).map_err(failed)?;
    let mut body = Zeroizing::new(Vec::with_capacity(length.0));
    serde_json::to_writer(&mut *body, object).map_err(failed)?;
    Ok(json(status, Bytes::from_owner(body)))
}

/// Counts what is written.
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

/// `response` with the entity tag of what it shows: it counts the changes that clients have made.
pub(crate) fn tagged(mut response: HttpResponse, revision: i64) -> Result<HttpResponse, ProblemResponse> {
    let tag = HeaderValue::try_from(format!("\"{revision}\""))
        .map_err(|error| ProblemResponse::internal().caused_by(error))?;
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

/// With the entity tag of what is `shown`, unless the request `made` an earlier revision: with the tag of a change that came after
/// its own, a client would replace what it did not expect.
pub(crate) fn tagged_as_made(
    response: HttpResponse,
    made: Option<i64>,
    shown: i64,
) -> Result<HttpResponse, ProblemResponse> {
    if made.is_none_or(|made| made == shown) { tagged(response, shown) } else { Ok(response) }
}

/// 202
pub(crate) fn accepted() -> HttpResponse {
    HttpResponse::new(StatusCode::ACCEPTED)
}

/// 204
pub(crate) fn no_content() -> HttpResponse {
    HttpResponse::new(StatusCode::NO_CONTENT)
}

/// `time` in RFC 3339, UTC, to the second. Times are our own clock's; one that has no text would not be a time at all.
pub(crate) fn time_text(time: Timestamp) -> String {
    time.to_rfc3339().unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::MessageBody as _;

    #[test]
    fn a_tag_is_of_the_change_that_was_made() {
        let tag = |made, shown| {
            let response = tagged_as_made(HttpResponse::new(StatusCode::OK), made, shown).ok()?;
            Some(response.headers().get(header::ETAG)?.as_bytes().to_vec())
        };
        assert_eq!(tag(Some(11), 11), Some(b"\"11\"".to_vec()));
        assert_eq!(tag(Some(11), 13), None, "another change came after it");
        assert_eq!(tag(None, 13), Some(b"\"13\"".to_vec()), "it changed nothing");
    }

    #[test]
    fn secrets_are_written_as_everything_else() {
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
