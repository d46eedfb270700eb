//! The token of a request in `Authorization: Bearer <token>`. Tokens in queries, forms or cookies are ignored.

use crate::problem_response::ProblemResponse;
use actix_web::http::header::{self, HeaderMap};
use secrecy::SecretString;

/// Maximum length of a token in bytes, as needed for identity tokens.
const MAX_TOKEN: usize = 8 * 1024;

/// Returns the access token of the request.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<&str, ProblemResponse> {
    match carried(headers) {
        Parsed::Token(token) => Ok(token),
        Parsed::OtherScheme => Err(ProblemResponse::no_token()),
        Parsed::Malformed => Err(ProblemResponse::invalid_token()),
    }
}

/// Returns the integration token of the request, as an owned value for another thread.
pub(crate) fn integration_token(headers: &HeaderMap) -> Result<SecretString, ProblemResponse> {
    match carried(headers) {
        Parsed::Token(token) => Ok(SecretString::from(token)),
        Parsed::OtherScheme => Err(ProblemResponse::no_integration_token()),
        Parsed::Malformed => Err(ProblemResponse::invalid_integration_token()),
    }
}

fn carried(headers: &HeaderMap) -> Parsed<'_> {
    let mut values = headers.get_all(header::AUTHORIZATION);
    match (values.next(), values.next()) {
        (None, _) => Parsed::OtherScheme,
        (Some(value), None) => parse(value.as_bytes()),
        (Some(_), Some(_)) => Parsed::Malformed,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed<'a> {
    Token(&'a str),
    /// No header, or another scheme. Handled as a request without a token (RFC 6750, section 3.1).
    OtherScheme,
    Malformed,
}

/// Parses `Bearer` (case-insensitive), one space and a token68 (RFC 9110, section 11.2).
fn parse(value: &[u8]) -> Parsed<'_> {
    let end = value.iter().position(|&byte| byte == b' ' || byte == b'\t').unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        let is_scheme = !scheme.is_empty() && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        return if is_scheme { Parsed::OtherScheme } else { Parsed::Malformed };
    }
    let token = rest.strip_prefix(b" ").filter(|token| token.len() <= MAX_TOKEN && is_token68(token));
    token.and_then(|token| std::str::from_utf8(token).ok()).map_or(Parsed::Malformed, Parsed::Token)
}

fn is_token68(text: &[u8]) -> bool {
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    let (text, _) = text.split_at(text.len() - padding);
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_scheme_has_any_case_and_one_space_behind_it() {
        for value in ["Bearer v4.local.a-_", "bearer v4.local.a-_", "BEARER v4.local.a-_", "bEaReR v4.local.a-_"] {
            assert_eq!(parse(value.as_bytes()), Parsed::Token("v4.local.a-_"), "{value}");
        }
        assert_eq!(parse(b"Bearer a=="), Parsed::Token("a=="));
    }

    #[test]
    fn everything_else_is_malformed_or_of_another_scheme() {
        let long = format!("Bearer {}", "a".repeat(9 * 1024));
        for value in [
            "Bearer",
            "Bearer ",
            "Bearer  a",
            "Bearer\ta",
            "Bearer a ",
            "Bearer a b",
            "Bearer a, Bearer b",
            "Bearer a,b",
            " Bearer a",
            "Bearer =",
            "Bearer a=b",
            "Bearer \u{e9}",
            "Bearer a\u{0}",
            "",
            "\tBearer a",
            "Bear\u{e9}r a",
            &long,
        ] {
            assert_eq!(parse(value.as_bytes()), Parsed::Malformed, "{value}");
        }
        for value in ["Basic YTpi", "Digest a=\"b\"", "Bearerx a", "v4", "Negotiate"] {
            assert_eq!(parse(value.as_bytes()), Parsed::OtherScheme, "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_token_is_exactly_what_follows_the_space(value in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Parsed::Token(token) = parse(&value) {
                prop_assert_eq!(&value[7..], token.as_bytes());
                prop_assert!(is_token68(token.as_bytes()));
            }
        }

        #[test]
        fn every_token68_is_read(token in "[A-Za-z0-9._~+/-]{1,200}={0,2}") {
            let value = format!("Bearer {token}");
            prop_assert_eq!(parse(value.as_bytes()), Parsed::Token(&token));
        }
    }
}
