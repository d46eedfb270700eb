//! Validation of content types.

use crate::problem_response::ProblemResponse;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use vault_api::ProblemCode;

/// Rejects bodies other than plain `application/json`.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), ProblemResponse> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        let detail = "Send the body without `Content-Encoding`.";
        return Err(ProblemResponse::new(ProblemCode::UnsupportedMediaType, detail));
    }
    let mut types = headers.get_all(header::CONTENT_TYPE);
    match (types.next(), types.next()) {
        (Some(value), None) if is_json(value.as_bytes()) => Ok(()),
        _ => Err(not_json()),
    }
}

/// Header with the media types of a patch (RFC 5789, section 3.1).
pub(crate) const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");
/// Value of `Accept-Patch`.
pub(crate) const PATCH_TYPES: &str = "application/merge-patch+json, application/json";

/// Rejects bodies other than a plain merge patch (RFC 7396) or JSON.
pub(crate) fn check_patch(headers: &HeaderMap) -> Result<(), ProblemResponse> {
    let plain = |value: &HeaderValue| media_type(value.as_bytes(), b"application/merge-patch+json");
    let mut types = headers.get_all(header::CONTENT_TYPE);
    let patch = matches!((types.next(), types.next()), (Some(value), None) if plain(value));
    let checked = match headers.contains_key(header::CONTENT_ENCODING) || !patch {
        true => check(headers),
        false => Ok(()),
    };
    checked.map_err(ProblemResponse::naming_patch_types)
}

/// Returns whether headers describe a body. The body may still be empty.
pub(crate) fn is_announced(headers: &HeaderMap) -> bool {
    headers.contains_key(header::CONTENT_TYPE) || headers.contains_key(header::CONTENT_ENCODING)
}

/// Creates status 415 for a body without a JSON content type.
pub(crate) fn not_json() -> ProblemResponse {
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
        let ok = |request: TestRequest| check(request.to_http_request().headers()).is_ok();
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
