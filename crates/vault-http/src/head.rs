//! Limits on request heads, in addition to those of the framework (131,072 bytes, 96 headers, 5 s).

use crate::problem_response::ProblemResponse;
use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap};
use vault_api::ProblemCode;

/// Maximum length of path and query in bytes.
const MAX_ADDRESS: usize = 8 * 1024;
/// Maximum length of a header value in bytes.
const MAX_HEADER: usize = 16 * 1024;
/// Maximum total size of header names and values in bytes.
const MAX_HEADERS: usize = 32 * 1024;

/// Rejects heads that are too large or request another protocol.
pub(crate) fn check(request: &HttpRequest) -> Result<(), ProblemResponse> {
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > MAX_ADDRESS {
        let detail = "Path and query together are longer than 8 KiB.";
        return Err(ProblemResponse::new(ProblemCode::AddressTooLong, detail).closing());
    }
    let headers = request.headers();
    let mut total = 0;
    for (name, value) in headers {
        total += name.as_str().len() + value.len();
        if value.len() > MAX_HEADER {
            total = usize::MAX;
            break;
        }
    }
    if total > MAX_HEADERS {
        let detail = "A header is larger than 16 KiB, or all headers together are larger than 32 KiB.";
        return Err(ProblemResponse::new(ProblemCode::HeadersTooLarge, detail).closing());
    }
    check_upgrade(headers)
}

/// Ignores `h2c`, which clients offer with ordinary requests. Rejects other upgrades, which are not supported.
fn check_upgrade(headers: &HeaderMap) -> Result<(), ProblemResponse> {
    let ignored =
        headers.get_all(header::UPGRADE).all(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"h2c"));
    if ignored {
        Ok(())
    } else {
        Err(ProblemResponse::malformed("Protocol upgrades are not supported. Send the request without `Upgrade`.")
            .closing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn code(request: TestRequest) -> Option<ProblemCode> {
        check(&request.to_http_request()).err().map(|problem_response| problem_response.code())
    }

    #[test]
    fn upgrades_other_than_h2c_are_refused() {
        for ignored in ["h2c", "H2C", " h2c "] {
            assert_eq!(code(TestRequest::default().insert_header(("Upgrade", ignored))), None, "{ignored}");
        }
        for refused in ["websocket", "h2c, websocket", "h2", "TLS/1.0", "", "h2c/1"] {
            let refusal = code(TestRequest::default().insert_header(("Upgrade", refused)));
            assert_eq!(refusal, Some(ProblemCode::MalformedRequest), "{refused}");
        }
        let two = TestRequest::default().append_header(("Upgrade", "h2c")).append_header(("Upgrade", "websocket"));
        assert_eq!(code(two), Some(ProblemCode::MalformedRequest));
    }

    #[test]
    fn heads_are_bounded() {
        let address = |length: usize| TestRequest::with_uri(&format!("/{}", "a".repeat(length - 1)));
        assert_eq!(code(address(MAX_ADDRESS)), None);
        assert_eq!(code(address(MAX_ADDRESS + 1)), Some(ProblemCode::AddressTooLong));
        let header = |length: usize| TestRequest::default().insert_header(("a", "x".repeat(length)));
        assert_eq!(code(header(MAX_HEADER)), None);
        assert_eq!(code(header(MAX_HEADER + 1)), Some(ProblemCode::HeadersTooLarge));
        let two = header(MAX_HEADER).append_header(("b", "x".repeat(MAX_HEADER)));
        assert_eq!(code(two), Some(ProblemCode::HeadersTooLarge));
    }
}
