//! Metrics and one log line per request. They contain only the method, the template of the path and the result.

use crate::peers::ConnectionRefusal;
use crate::route::{Operation, RequestPath, activation_routes, routes};
use actix_web::http::{Method, StatusCode};
use metrics::{Counter, Histogram};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

const REQUESTS: &str = "orgvault_http_requests_total";
const DURATION: &str = "orgvault_http_request_duration_seconds";

const REFUSED: &str = "orgvault_http_connections_refused_total";
const HANDSHAKES_FAILED: &str = "orgvault_tls_handshakes_failed_total";
const READY: &str = "orgvault_ready";

/// Rejections for which operators have alerts: operations and statuses.
const REFUSALS: [(&str, &str); 6] = [
    ("log-in", "429"),
    ("log-in", "503"),
    ("activate", "403"),
    ("activate", "429"),
    ("check-namespace", "403"),
    ("check-namespace", "429"),
];

/// Registers the descriptions of the metrics.
pub(crate) fn describe() {
    metrics::describe_counter!(REQUESTS, "Requests by operation and status");
    metrics::describe_histogram!(DURATION, metrics::Unit::Seconds, "Time from the head of a request to its response");
    metrics::describe_counter!(REFUSED, "Connections closed unanswered, by reason");
    metrics::describe_counter!(HANDSHAKES_FAILED, "TLS handshakes that failed or took too long");
    metrics::describe_gauge!(READY, "1 if requests can be served, otherwise 0 (see /readyz for the reason)");
    // Create all series at start: a series that starts with its first event shows no increase.
    metrics::counter!(HANDSHAKES_FAILED).absolute(0);
    for refusal in ConnectionRefusal::ALL {
        metrics::counter!(REFUSED, "reason" => refusal.as_str()).absolute(0);
    }
    let failures = routes().chain(activation_routes()).map(|route| (route.operation, "500"));
    for (operation, status) in failures.chain(REFUSALS) {
        metrics::counter!(REQUESTS, "operation" => operation, "status" => status).absolute(0);
    }
}

/// Sets the readiness metric.
pub(crate) fn show_readiness(ready: bool) {
    metrics::gauge!(READY).set(if ready { 1.0 } else { 0.0 });
}

/// Counts a connection that was closed without a response.
pub(crate) fn connection_refused(refusal: ConnectionRefusal) {
    metrics::counter!(REFUSED, "reason" => refusal.as_str()).increment(1);
}

/// Counts a TLS handshake that failed or timed out.
pub(crate) fn handshake_failed() {
    metrics::counter!(HANDSHAKES_FAILED).increment(1);
}

/// Metric handles of one worker. They are cached to avoid a lookup per request.
pub(crate) struct Telemetry {
    requests: RefCell<HashMap<(Operation, u16), Counter>>,
    durations: [OnceCell<Histogram>; Operation::COUNT],
}

impl Telemetry {
    pub(crate) fn new() -> Self {
        Self { requests: RefCell::default(), durations: [const { OnceCell::new() }; Operation::COUNT] }
    }

    /// Counts and logs a completed request.
    pub(crate) fn answered(&self, request: &Answered<'_>) {
        let operation = request.operation;
        let status = request.status.as_u16();
        let mut requests = self.requests.borrow_mut();
        requests
            .entry((operation, status))
            .or_insert_with(
                || metrics::counter!(REQUESTS, "operation" => operation.as_str(), "status" => status.to_string()),
            )
            .increment(1);
        self.durations[operation as usize]
            .get_or_init(|| metrics::histogram!(DURATION, "operation" => operation.as_str()))
            .record(request.duration);
        // At debug level, because under full load a log line costs more than the request.
        tracing::debug!(
            target: "vault_http::request",
            operation = operation.as_str(),
            method = method_name(request.method),
            route = request.place.map_or("", RequestPath::template),
            status,
            ms = request.duration.as_secs_f64() * 1_000.0,
            "request"
        );
    }
}

/// A completed request.
pub(crate) struct Answered<'a> {
    pub(crate) operation: Operation,
    pub(crate) method: &'a Method,
    pub(crate) place: Option<RequestPath<'a>>,
    pub(crate) status: StatusCode,
    pub(crate) duration: Duration,
}

/// Returns the name of a common method. Other names are arbitrary client input.
pub(crate) fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "TRACE" => "TRACE",
        "CONNECT" => "CONNECT",
        _ => "other",
    }
}
