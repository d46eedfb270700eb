//! Traces of requests, sent to a collector as OTLP over HTTP.
//!
//! A separate thread sends them. If its buffer is full, spans are dropped, so that no request waits for the collector.

use crate::egress;
use crate::settings::Settings;
use async_trait::async_trait;
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, TraceFlags, TraceId, TraceState, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter as Otlp, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    Sampler, SamplingDecision, SamplingResult, SdkTracerProvider, ShouldSample, SpanData, SpanExporter,
};
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use vault_cli::failure::Failure;
use vault_core::trace::TARGET;
use vault_storage::{ExportClient, ExportError};

/// Path of the collector's endpoint.
const PATH: &str = "/v1/traces";
/// Time limit for sending the remaining traces at shutdown.
const LAST: Duration = Duration::from_secs(2);
/// Span attribute with the client's `traceparent`, until the exporter converts it to a link.
const TRACEPARENT: &str = "traceparent";

/// The exporter of traces.
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts the export on `runtime`, if the settings contain a collector.
    ///
    /// # Errors
    /// The headers are invalid, or a file of the outgoing proxy cannot be used.
    pub(crate) fn start(settings: &Settings, runtime: &Handle) -> Result<Option<Self>, Failure> {
        let Some(collector) = &settings.server.otlp_endpoint else { return Ok(None) };
        let url = format!("{collector}{PATH}");
        let client = ExportClient::new(&egress::of(settings)?, &url, &headers(settings)?)?;
        let poster = Poster { client, runtime: runtime.clone() };
        let otlp = Otlp::builder().with_http().with_http_client(poster).build()?;
        let exporter = Exporter { otlp, url, is_away: AtomicBool::new(false) };
        let resource = Resource::builder_empty()
            .with_service_name("orgvault")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(Requests)))
            .with_resource(resource.build())
            .with_batch_exporter(exporter);
        Ok(Some(Self(provider.build())))
    }

    /// Returns the layer that records spans of requests, without log lines.
    pub(crate) fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(&self) -> impl Layer<S> + use<S> {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("orgvault"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_level(false)
            .with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target() == TARGET))
    }

    /// Sends the remaining traces within a short time limit. Unsent traces are lost.
    pub(crate) fn end(self) {
        let _ = self.0.shutdown_with_timeout(LAST); // an unreachable collector was already logged
    }
}

/// Reads the headers for the collector, one per line.
fn headers(settings: &Settings) -> Result<Vec<(String, SecretString)>, Failure> {
    let Some(text) = &settings.server.otlp_headers else { return Ok(Vec::new()) };
    let refused = |reason: &str| Failure::usage(format!("otlp-headers: {reason}"));
    let text = text.expose_secret(); // sent to the collector
    let mut headers = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let (name, value) =
            line.split_once(':').ok_or_else(|| refused(&format!("line {number}: expected NAME: VALUE")))?;
        headers.push((name.trim().to_owned(), SecretString::from(value.trim())));
    }
    match headers.is_empty() {
        true => Err(refused("contains no header")),
        false => Ok(headers),
    }
}

/// Sends the exporter's requests with the server's HTTP client. Called only from the exporter's thread, which has no
/// runtime.
#[derive(Debug)]
struct Poster {
    client: ExportClient,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Poster {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move { client.post("application/x-protobuf", request.into_body()).await });
        match sent.await? {
            Ok(()) => Ok(Response::new(Bytes::new())),
            Err(ExportError::Status { status, .. }) => Ok(Response::builder().status(status).body(Bytes::new())?),
            Err(error) => Err(error.into()),
        }
    }
}

/// Samples only spans of requests, not of background work.
#[derive(Clone, Debug)]
struct Requests;

impl ShouldSample for Requests {
    fn should_sample(
        &self,
        _parent: Option<&Context>,
        _trace: TraceId,
        _name: &str,
        kind: &SpanKind,
        _attributes: &[KeyValue],
        _links: &[Link],
    ) -> SamplingResult {
        let is_request = *kind == SpanKind::Server;
        SamplingResult {
            decision: if is_request { SamplingDecision::RecordAndSample } else { SamplingDecision::Drop },
            attributes: Vec::new(),
            trace_state: TraceState::default(),
        }
    }
}

/// Exports spans. Logs once when the collector becomes unreachable, and once when it is reachable again.
#[derive(Debug)]
struct Exporter {
    otlp: Otlp,
    url: String,
    is_away: AtomicBool,
}

impl SpanExporter for Exporter {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(link_client);
        let sent = self.otlp.export(batch).await;
        let was_away = self.is_away.swap(sent.is_err(), Ordering::Relaxed);
        match &sent {
            Err(error) if !was_away => {
                tracing::error!(
                    collector = self.url,
                    "traces are not accepted and are dropped until they are: {error}"
                );
            }
            Ok(()) if was_away => tracing::info!(collector = self.url, "traces are accepted again"),
            _ => {}
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}

/// Converts the client's trace to a link.
fn link_client(span: &mut SpanData) {
    let Some(at) = span.attributes.iter().position(|attribute| attribute.key.as_str() == TRACEPARENT) else { return };
    let named = span.attributes.swap_remove(at);
    if let Some(context) = remote(&named.value.as_str()) {
        span.links.links.push(Link::with_context(context));
    }
}

/// Parses a W3C Trace Context `traceparent`.
fn remote(traceparent: &str) -> Option<SpanContext> {
    let [_, trace, span, flags] = traceparent.split('-').collect::<Vec<_>>()[..] else { return None };
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    Some(SpanContext::new(trace, span, flags, true, TraceState::default()))
}
