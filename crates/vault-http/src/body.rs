//! Bodies of requests: media type, size, deadline and JSON.

use crate::listener;
use crate::problem::ProblemResponse;
use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{self, CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, web};
use futures_util::future::LocalBoxFuture;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use std::future::Future;
use tokio::time::timeout;
use vault_api::ProblemCode;
use vault_core::field::{FieldCode, FieldError};
use vault_core::json::{self, Limits, Node, SyntaxError, typed_error};

/// Rejects bodies other than plain `application/json`.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), ProblemResponse> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        let detail = "Send the body without `Content-Encoding`.";
        return Err(ProblemResponse::new(ProblemCode::UnsupportedMediaType, detail));
    }
    let mut types = headers.get_all(header::CONTENT_TYPE);
    match (types.next(), types.next()) {
        (Some(value), None) if is_json(value.as_bytes()) => Ok(()),
        _ => Err(unexpected_type()),
    }
}

/// Rejects bodies other than a plain merge patch (RFC 7396) or JSON.
pub(crate) fn check_patch(headers: &HeaderMap) -> Result<(), ProblemResponse> {
    let plain = |value: &HeaderValue| media_type(value.as_bytes(), b"application/merge-patch+json");
    let mut types = headers.get_all(header::CONTENT_TYPE);
    let patch = matches!((types.next(), types.next()), (Some(value), None) if plain(value));
    let checked = match headers.contains_key(header::CONTENT_ENCODING) || !patch {
        true => check_json(headers),
        false => Ok(()),
    };
    checked.map_err(ProblemResponse::naming_patch_types)
}

/// Returns whether headers describe a body. The body may still be empty.
pub(crate) fn is_announced(headers: &HeaderMap) -> bool {
    headers.contains_key(header::CONTENT_TYPE) || headers.contains_key(header::CONTENT_ENCODING)
}

/// Creates status 415 for a body without a JSON content type.
fn unexpected_type() -> ProblemResponse {
    ProblemResponse::new(ProblemCode::UnsupportedMediaType, "Send `Content-Type: application/json`.")
}

fn is_json(value: &[u8]) -> bool {
    media_type(value, b"application/json")
}

/// Returns whether `value` is the media type `expected`, case-insensitive, with no parameter except `charset=utf-8`.
fn media_type(value: &[u8], expected: &[u8]) -> bool {
    let mut parts = value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let media_type = parts.next().unwrap_or_default();
    if !media_type.eq_ignore_ascii_case(expected) {
        return false;
    }
    match (parts.next(), parts.next()) {
        (None, _) => true,
        (Some(parameter), None) => {
            parameter.eq_ignore_ascii_case(b"charset=utf-8") || parameter.eq_ignore_ascii_case(b"charset=\"utf-8\"")
        }
        _ => false,
    }
}

/// Maximum size of a body in bytes. The app passes it to [`web::PayloadConfig`].
pub(crate) const MAX_BODY: usize = 64 * 1024;

/// The JSON body of a request. As the last parameter of a handler, it is read after everything else is checked.
pub(crate) struct Body<T>(pub(crate) T);

/// Same as [`Body`], for a body that may be absent.
pub(crate) struct OptionalBody<T>(pub(crate) Option<T>);

/// Same as [`Body`], for a merge patch (RFC 7396).
pub(crate) struct Patch<T>(pub(crate) T);

/// Marks a request whose body was read completely.
struct Complete;

/// Returns whether a part of the body may be unread. Then the connection must close after the response.
pub(crate) fn is_unread(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let announced =
        headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0") || headers.contains_key(TRANSFER_ENCODING);
    announced && !request.extensions().contains::<Complete>()
}

type Read<T> = LocalBoxFuture<'static, Result<T, ProblemResponse>>;

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = ProblemResponse;
    type Future = Read<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Read<Self> {
        checked(check_json, request, payload, Self)
    }
}

impl<T: DeserializeOwned + 'static> FromRequest for Patch<T> {
    type Error = ProblemResponse;
    type Future = Read<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Read<Self> {
        checked(check_patch, request, payload, Self)
    }
}

impl<T: DeserializeOwned + 'static> FromRequest for OptionalBody<T> {
    type Error = ProblemResponse;
    type Future = Read<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Read<Self> {
        let announced = is_announced(request.headers());
        let is_json = if announced { check_json(request.headers()) } else { Ok(()) };
        let read = read(request, payload);
        Box::pin(async move {
            is_json?;
            match read.await? {
                nothing if nothing.is_empty() => Ok(Self(None)),
                bytes if announced => parse(&bytes).map(|parsed| Self(Some(parsed))),
                _ => Err(unexpected_type()),
            }
        })
    }
}

/// Checks the media type, then reads and parses the body.
fn checked<T: DeserializeOwned + 'static, B: 'static>(
    check: fn(&HeaderMap) -> Result<(), ProblemResponse>,
    request: &HttpRequest,
    payload: &mut Payload,
    wrap: fn(T) -> B,
) -> Read<B> {
    let is_json = check(request.headers());
    let read = read(request, payload);
    Box::pin(async move {
        is_json?;
        parse(&read.await?).map(wrap)
    })
}

/// Reads the whole body.
fn read(
    request: &HttpRequest,
    payload: &mut Payload,
) -> impl Future<Output = Result<web::Bytes, ProblemResponse>> + use<> {
    let deadline = listener::of(request).common().deadlines.body;
    let bytes = web::Bytes::from_request(request, payload);
    let request = request.clone();
    async move {
        let late = |_| {
            let detail = format!("The body did not arrive within {} seconds.", deadline.as_secs());
            ProblemResponse::new(ProblemCode::RequestTimeout, detail).closing()
        };
        let bytes = timeout(deadline, bytes).await.map_err(late)?.map_err(|error| unreadable(&error))?;
        request.extensions_mut().insert(Complete);
        Ok(bytes)
    }
}

fn unreadable(error: &actix_web::Error) -> ProblemResponse {
    match error.as_error() {
        Some(PayloadError::Overflow) => {
            ProblemResponse::new(ProblemCode::TooLarge, "The body is larger than 64 KiB.").closing()
        }
        _ => ProblemResponse::malformed("The body is truncated or is not valid chunked encoding.").closing(),
    }
}

/// Parses `bytes`. An error names the first invalid field and contains no value of it.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ProblemResponse> {
    // Types of objects would accept arrays of their members too.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        serde_json::from_slice::<IgnoredAny>(bytes).map_err(|_| not_json())?;
        let error = FieldError::new("", FieldCode::WrongType, "must be an object");
        return Err(ProblemResponse::fields(vec![error]));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        if error.inner().is_data() { ProblemResponse::fields(vec![typed_error(&error)]) } else { not_json() }
    })?;
    json.end().map_err(|_| not_json())?;
    Ok(parsed)
}

fn not_json() -> ProblemResponse {
    ProblemResponse::malformed(
        "The body is not valid JSON. In strings, write \\\" for a quotation mark and \\\\ for a backslash.",
    )
}

/// Parses the member at `pointer` with the parser of the domain.
///
/// # Errors
/// It exceeds the limits of requests, or a name in it is repeated.
pub(crate) fn node(raw: &RawValue, pointer: &str) -> Result<Node, ProblemResponse> {
    let document = json::parse(raw.get().as_bytes(), Limits::REQUEST).map_err(|error| {
        ProblemResponse::malformed(match error {
            SyntaxError::TooDeep => "The body is nested too deeply.",
            SyntaxError::TooManyMembers => "The body has too many fields.",
            _ => return not_json(),
        })
    })?;
    if document.duplicates.is_empty() {
        return Ok(document.root);
    }
    let at = |error: FieldError| FieldError { pointer: [pointer, &error.pointer].concat(), ..error };
    Err(ProblemResponse::fields(document.duplicates.into_iter().map(at).collect()))
}

/// The errors in the values of a request, which are reported together.
#[derive(Default)]
pub(crate) struct ValueErrors(Vec<FieldError>);

impl ValueErrors {
    /// Keeps the error of a value.
    pub(crate) fn check<V>(&mut self, parsed: Result<V, FieldError>) -> Option<V> {
        parsed.map_err(|error| self.0.push(error)).ok()
    }

    /// Same as [`ValueErrors::check`], for a value with several errors.
    pub(crate) fn check_all<V>(&mut self, parsed: Result<V, Vec<FieldError>>) -> Option<V> {
        parsed.map_err(|errors| self.0.extend(errors)).ok()
    }

    /// Returns whether there are no errors.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `checked` if there are no errors. `None` means that a value has one.
    ///
    /// # Errors
    /// All errors of the request.
    pub(crate) fn finish<V>(self, checked: Option<V>) -> Result<V, ProblemResponse> {
        checked.filter(|_| self.0.is_empty()).ok_or_else(|| ProblemResponse::fields(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use proptest::prelude::*;

    #[test]
    fn only_plain_json_is_accepted() {
        for value in [
            "application/json",
            "Application/JSON",
            "application/json;charset=utf-8",
            "application/json ; charset=UTF-8",
            "application/json; Charset=\"utf-8\"",
            " application/json ",
        ] {
            assert!(is_json(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "json",
            "application/json;",
            "application/json; charset=utf-7",
            "application/json; charset=utf8",
            "application/json; charset=utf-8; a=b",
            "application/json; boundary=x",
            "application/problem+json",
            "text/json",
            "application/jsonp",
            "application/json, text/plain",
            "application/json charset=utf-8",
            "multipart/form-data",
            "application/x-www-form-urlencoded",
            "text/plain",
            "application/json; charset='utf-8'",
            "application/json; charset",
        ] {
            assert!(!is_json(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn one_type_and_no_encoding() {
        let ok = |request: TestRequest| check_json(request.to_http_request().headers()).is_ok();
        let json = || TestRequest::default().insert_header(("Content-Type", "application/json"));
        assert!(ok(json()));
        assert!(!ok(TestRequest::default()));
        assert!(!ok(json().append_header(("Content-Type", "application/json"))));
        for encoding in ["gzip", "br", "zstd", "identity", ""] {
            assert!(!ok(json().insert_header(("Content-Encoding", encoding))), "{encoding}");
        }
    }

    #[test]
    fn patch_is_a_merge_patch_or_plain_json() {
        let ok = |value: &str| {
            let request = TestRequest::default().insert_header(("Content-Type", value));
            check_patch(request.to_http_request().headers()).is_ok()
        };
        for value in ["application/merge-patch+json", "Application/Merge-Patch+JSON;charset=utf-8", "application/json"]
        {
            assert!(ok(value), "{value}");
        }
        for value in ["application/json-patch+json", "application/merge-patch+xml", "text/json", ""] {
            assert!(!ok(value), "{value}");
        }
        let both = TestRequest::default()
            .append_header(("Content-Type", "application/merge-patch+json"))
            .append_header(("Content-Type", "application/json"));
        assert!(check_patch(both.to_http_request().headers()).is_err());
        let encoded = TestRequest::default()
            .insert_header(("Content-Type", "application/merge-patch+json"))
            .insert_header(("Content-Encoding", "gzip"));
        assert!(check_patch(encoded.to_http_request().headers()).is_err());
    }

    proptest! {
        #[test]
        fn only_documented_forms_are_accepted(value in "[ -~]{0,60}") {
            let compact: String = value.to_ascii_lowercase().split(';').map(str::trim).collect::<Vec<_>>().join(";");
            let documented = ["application/json", "application/json;charset=utf-8", "application/json;charset=\"utf-8\""];
            prop_assert_eq!(is_json(value.as_bytes()), documented.contains(&&*compact));
        }
    }
}
