//! Test servers and raw HTTP exchanges.

mod activation_listener;
mod exchange;
mod log;
mod parts;
mod world;

use std::time::{Duration, Instant};

pub(crate) use activation_listener::ActivationListener;
pub(crate) use exchange::{Response, Wire, request};
pub(crate) use log::logged;
pub(crate) use world::{PASSWORD, World, WorldBuilder, s3};

/// Retries until there is a result.
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        match attempt() {
            Some(result) => return result,
            None => assert!(began.elapsed() < Duration::from_secs(60), "waited in vain until {what}"),
        }
        std::thread::sleep(Duration::from_millis(10)); // leaves the processor to the others
    }
}

/// Content security policy of API responses.
const API_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'";
/// Content security policy of the console.
pub(crate) const CONSOLE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Checks the headers of every response. The page and files of the console have another policy.
pub(crate) fn assert_standard_headers(response: &Response, what: &str) {
    let console = ["text/html", "text/javascript", "text/css", "image/svg+xml"];
    let media_type = response.header("content-type").unwrap_or_default();
    let policy = if console.iter().any(|kind| media_type.starts_with(kind)) { CONSOLE_POLICY } else { API_POLICY };
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("content-security-policy", policy),
    ] {
        assert_eq!(response.header(name), Some(value), "{name} of {what}");
    }
    let id = response.header("x-request-id").unwrap_or_default();
    assert_eq!(uuid::Uuid::parse_str(id).map(|id| id.to_string()).as_deref(), Ok(id), "request id of {what}");
    for absent in ["server", "access-control-allow-origin", "access-control-allow-credentials", "x-powered-by"] {
        assert_eq!(response.header(absent), None, "{absent} of {what}");
    }
}

/// Returns the problem in `response`, after checking that it is complete.
pub(crate) fn assert_problem(response: &Response, status: u16, code: &str, what: &str) -> vault_api::Problem {
    assert_standard_headers(response, what);
    assert_eq!(response.status, status, "status of {what}: {}", response.text());
    assert_eq!(response.header("content-type"), Some("application/problem+json"), "{what}");
    let problem: vault_api::Problem = serde_json::from_slice(&response.body).expect(what);
    assert_eq!(problem.kind, format!("urn:orgvault:problem:{code}"), "{what}");
    assert_eq!((problem.status, &*problem.code), (status, code), "{what}");
    assert!(!problem.title.is_empty() && !problem.detail.is_empty(), "{what}");
    assert_eq!(Some(&*problem.request_id), response.header("x-request-id"), "{what}");
    let challenge = response.header("www-authenticate");
    let challenges = matches!(status, 401 | 403) && !matches!(code, "frozen" | "cross-site");
    assert_eq!(challenge.is_some(), challenges, "challenge of {what}");
    assert_eq!(response.header("retry-after").is_some(), matches!(status, 429 | 503), "retry-after of {what}");
    problem
}
