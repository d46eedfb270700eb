//! The spans of a request: one for log lines, and the trace spans if traces are enabled.

use crate::telemetry::method_name;
use actix_web::HttpRequest;
use std::future::Future;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, trace_span};
use vault_core::trace::TARGET;

const STATUS: &str = "http.response.status_code";

tokio::task_local! {
    /// The span for log lines.
    static REQUEST: Span;
}

/// Runs `work` within `span`, so that log lines contain its request.
pub(crate) fn within<F: Future>(span: Span, work: F) -> impl Future<Output = F::Output> {
    REQUEST.scope(span.clone(), work).instrument(span)
}

/// Runs `use_case` as part of the caller's request, on whichever task it is polled.
pub(crate) fn carried<F: Future>(use_case: F) -> impl Future<Output = F::Output> {
    let part = trace_span!(target: TARGET, "use-case");
    let operation = Span::current();
    let request = REQUEST.try_with(Span::clone).unwrap_or_else(|_| operation.clone());
    // A span is current on a task only if it is entered there, and log lines use the current one.
    let operation = if operation.id() == request.id() { Span::none() } else { operation };
    use_case.instrument(part).instrument(operation).instrument(request)
}

/// Creates the span of a request's trace. The client's trace is linked rather than continued, because the client
/// chooses its IDs.
pub(crate) fn operation(operation: &str, request: &HttpRequest, request_id: &str) -> Span {
    let span = trace_span!(
        target: TARGET,
        "operation",
        otel.name = operation,
        otel.kind = "server",
        request_id,
        http.request.method = method_name(request.method()),
        http.response.status_code = Empty,
        traceparent = Empty,
    );
    if !span.is_disabled()
        && let Some(parent) = request.headers().get("traceparent").and_then(|value| value.to_str().ok())
        && is_traceparent(parent)
    {
        span.record("traceparent", parent);
    }
    span
}

/// Records the status of the response.
pub(crate) fn answered(span: &Span, status: u16) {
    span.record(STATUS, status);
}

/// Returns whether `text` is a version 00 `traceparent` of W3C Trace Context with non-zero IDs.
fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_id = |part: &str, length| part.len() == length && is_hex(part) && part.bytes().any(|byte| byte != b'0');
    match text.split('-').collect::<Vec<_>>()[..] {
        ["00", trace, span, flags] => is_id(trace, 32) && is_id(span, 16) && flags.len() == 2 && is_hex(flags),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_is_parsed_strictly() {
        assert!(is_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        for text in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-secret92f3577b34da6a3ce929d0e0e4-00f067aa0ba902b7-01",
        ] {
            assert!(!is_traceparent(text), "{text}");
        }
    }
}
