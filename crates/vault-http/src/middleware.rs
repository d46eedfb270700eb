//! Common parts of all responses: a request ID, standard headers, a problem document instead of an error, a log line, metrics.

use crate::body;
use crate::caller::RequestId;
use crate::connections::IdleTimer;
use crate::head;
use crate::listener;
use crate::problem::ProblemResponse;
use crate::routes::Route;
use crate::telemetry::{Answered, Telemetry};
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::ConnectionType;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument as _;
use uuid::Uuid;

/// Headers of every response. The console sets its own policy, and its files their own caching.
const STANDARD: [(HeaderName, HeaderValue); 4] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    ),
];
/// Sent over TLS: for two years, browsers use only TLS for this host name. Subdomains are not included, because other
/// operators may be responsible for them.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=63072000");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

thread_local! {
    /// Metric handles of one worker.
    static TELEMETRY: Telemetry = Telemetry::new();
}

/// Responds to `request` in all cases. All its log lines are within a span with the request ID.
pub(crate) async fn common(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let began = Instant::now();
    let timer = request.conn_data::<Rc<IdleTimer>>().cloned();
    let _busy = timer.as_ref().map(|timer| timer.busy());
    let listener = Arc::clone(listener::of(request.request()));
    let id = listener.common().ids.random();
    let mut text = Uuid::encode_buffer();
    let text: &str = id.hyphenated().encode_lower(&mut text);
    request.extensions_mut().insert(RequestId(id));
    let span = tracing::error_span!("request", request_id = text);
    let answered = async {
        let closed = timer.as_ref().is_some_and(|timer| timer.is_closing());
        let checked = if closed { Err(ProblemResponse::after_close()) } else { head::check(request.request()) };
        match checked {
            Ok(()) => next.call(request).await.map(ServiceResponse::map_into_boxed_body),
            Err(problem) => Ok(request.error_response(problem)),
        }
    };
    let response = answered.instrument(span.clone()).await?;

    let _entered = span.enter();
    let problem = response.response().error().and_then(|error| error.as_error::<ProblemResponse>());
    let problem = problem.map(|problem| problem.respond(text));
    let mut response = match problem {
        Some(problem) => response.into_response(problem),
        None => response,
    };
    // For an ignored upgrade, the framework would repeat `Connection: upgrade`.
    let head = response.request().head();
    let is_last =
        head.upgrade() || head.connection_type() == ConnectionType::Close || body::is_unread(response.request());
    if is_last {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    if let Some(timer) = timer.filter(|_| response.response().head().connection_type() == ConnectionType::Close) {
        timer.close(listener.common().deadlines.answer);
    }
    let is_remote = response.request().peer_addr().is_some(); // a Unix socket does not use TLS
    let headers = response.headers_mut();
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding == "identity") {
        headers.remove(header::CONTENT_ENCODING); // it is no encoding (RFC 9110, section 8.4.1)
    }
    for (name, value) in STANDARD {
        if !headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
    if listener.common().over_tls && is_remote {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    if let Ok(id) = HeaderValue::from_str(text) {
        headers.insert(REQUEST_ID, id);
    }
    let route = response.request().extensions().get::<Route>().copied();
    let answered = Answered {
        operation: route.map_or("none", |route| route.operation),
        method: response.request().method(),
        template: route.map_or("", |route| route.template),
        status: response.status(),
        duration: began.elapsed(),
    };
    TELEMETRY.with(|telemetry| telemetry.answered(&answered));
    Ok(response)
}
