//! Processing of every request: limits, request ID, response headers and log line.

use crate::body::Incoming;
use crate::call::Call;
use crate::connection::Phase;
use crate::head;
use crate::host::HostNames;
use crate::problem_response::ProblemResponse;
use crate::route::Lookup;
use crate::telemetry::{Answered, Telemetry};
use crate::trace::{self, RequestSpans};
use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{ConnectionType, Method, Version};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::FutureExt as _;
use ipnet::IpNet;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};
use uuid::Uuid;
use vault_core::port::IdGenerator;

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
/// All supported methods, for `CONNECT`, which contains no path to look up.
const ALL_METHODS: &str = "GET, HEAD, POST, PATCH, DELETE";

/// The operations of a listener.
pub(crate) trait Api: Clone + Send + 'static {
    /// Returns the route of `method` at `path`.
    fn find<'a>(&self, path: &'a str, method: &Method) -> Lookup<'a>;

    /// Returns the proxies whose `X-Forwarded-For` is evaluated.
    fn trusted_proxies(&self) -> &[IpNet] {
        &[]
    }

    /// Runs an operation.
    async fn run(&self, call: Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse>;
}

/// Request processing of one worker.
pub(crate) struct Exchange<A> {
    api: A,
    ids: Arc<dyn IdGenerator>,
    hosts: HostNames,
    over_tls: bool,
    telemetry: Telemetry,
}

impl<A: Api> Exchange<A> {
    pub(crate) fn new(api: A, ids: Arc<dyn IdGenerator>, hosts: HostNames, over_tls: bool) -> Self {
        Self { api, ids, hosts, over_tls, telemetry: Telemetry::new() }
    }

    /// Responds to `request` in all cases. All its log lines are within a span with the request ID.
    pub(crate) async fn answer(&self, request: HttpRequest, payload: Payload) -> HttpResponse {
        let uuid = self.ids.random();
        let mut id = Uuid::encode_buffer();
        let id: &str = uuid.hyphenated().encode_lower(&mut id);
        let span = tracing::error_span!("request", request_id = id);
        self.answer_as(uuid, id, span.clone(), request, payload).instrument(span).await
    }

    async fn answer_as(
        &self,
        uuid: Uuid,
        id: &str,
        span: Span,
        request: HttpRequest,
        payload: Payload,
    ) -> HttpResponse {
        let began = Instant::now();
        let phase = request.conn_data::<Rc<Phase>>().cloned();
        let _answering = phase.clone().map(Phase::begin);
        let found = self.api.find(request.path(), request.method());
        let mut body = Incoming::new(&request, payload);
        let operation = trace::operation(found.operation(), &request, id);
        let spans = RequestSpans { request: span, operation: operation.clone() };
        let run = self.run(uuid, spans, &request, &found, &mut body).instrument(operation.clone());
        let outcome = AssertUnwindSafe(run).catch_unwind().await;
        let response = match outcome {
            Ok(Ok(response)) => response,
            Ok(Err(problem_response)) => problem_response.into_response(id),
            // The panic message may contain secrets. Only the panic hook prints it.
            Err(_) => ProblemResponse::internal().caused_by("a handler panicked").into_response(id),
        };

        let mut response = body.conclude(response);
        let head = response.head_mut();
        // The framework reuses response heads with the version of their last response, and decides by version below.
        head.version = Version::HTTP_11;
        // For an ignored upgrade, the framework would repeat `Connection: upgrade` and then close.
        if request.head().upgrade() || request.head().connection_type() == ConnectionType::Close {
            head.set_connection_type(ConnectionType::Close);
        }
        if head.connection_type() == ConnectionType::Close
            && let Some(phase) = phase
        {
            phase.close();
        }
        let headers = response.headers_mut();
        for (name, value) in STANDARD {
            if !headers.contains_key(&name) {
                headers.insert(name, value);
            }
        }
        if self.over_tls {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
        }
        if let Ok(id) = HeaderValue::from_str(id) {
            headers.insert(REQUEST_ID, id);
        }
        trace::answered(&operation, response.status().as_u16());
        self.telemetry.answered(&Answered {
            operation: found.operation(),
            method: request.method(),
            template: found.template(),
            status: response.status(),
            duration: began.elapsed(),
        });
        response
    }

    async fn run(
        &self,
        id: Uuid,
        spans: RequestSpans,
        request: &HttpRequest,
        found: &Lookup<'_>,
        body: &mut Incoming,
    ) -> Result<HttpResponse, ProblemResponse> {
        head::check(request)?;
        // Probes use any host name, and read no data.
        if !matches!(found, Lookup::Found(place) if place.route().is_probe) {
            self.hosts.check(request)?;
        }
        match found {
            Lookup::Found(place) => {
                let call = Call::new(request, *place, id, spans, self.api.trusted_proxies());
                self.api.run(call, body).await
            }
            Lookup::OtherMethod { allow, .. } => Err(ProblemResponse::method_not_allowed(allow)),
            Lookup::Unknown if request.method() == Method::CONNECT => {
                Err(ProblemResponse::method_not_allowed(ALL_METHODS).closing())
            }
            Lookup::Unknown => Err(ProblemResponse::not_found()),
        }
    }
}
