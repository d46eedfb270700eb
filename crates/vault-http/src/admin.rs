//! The admin listener: metrics and probes. It must not have a public address.

use crate::body::Incoming;
use crate::call::Call;
use crate::endpoint::{Endpoint, get, handler};
use crate::exchange::Api;
use crate::operation::probe;
use crate::problem_response::ProblemResponse;
use crate::readiness::Readiness;
use crate::route::{Lookup, find};
use crate::server::{BoundServer, serve};
use crate::settings::{AdminSettings, BasePath};
use crate::telemetry;
use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;

/// Returns all metrics in the Prometheus text format.
pub type MetricsText = Arc<dyn Fn() -> String + Send + Sync>;

/// The parts of the admin listener.
#[derive(Clone)]
pub struct AdminParts {
    /// Runtime for readiness checks.
    pub runtime: Handle,
    /// Text for `/metrics`.
    pub metrics: MetricsText,
    /// State for `/readyz`.
    pub readiness: Readiness,
    /// Generator of request IDs.
    pub ids: Arc<dyn IdGenerator>,
}

/// Binds the admin listener.
///
/// # Errors
/// An address cannot be bound, or there is none.
pub fn admin_server(settings: &AdminSettings, parts: AdminParts) -> io::Result<BoundServer> {
    let runtime = parts.runtime.clone();
    let ids = Arc::clone(&parts.ids);
    serve(&settings.listener, None, &runtime, ids, parts)
}

/// The routes of the admin listener.
static ADMIN: [Endpoint<AdminParts>; 3] = [
    get("/livez", "live", handler!(live)).probe(),
    get("/readyz", "ready", handler!(ready)).probe(),
    get("/metrics", "metrics", handler!(metrics)),
];

impl Api for AdminParts {
    fn find<'a>(&self, path: &'a str, method: &Method) -> Lookup<'a> {
        find(&ADMIN, &BasePath::default(), path, method)
    }

    async fn run(&self, call: Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
        body.ignore().await?;
        (ADMIN[call.place.row()].handler)(self, &call, body).await
    }
}

async fn live(_: &AdminParts, _: &Call<'_>, _: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    probe::live()
}

async fn ready(api: &AdminParts, _: &Call<'_>, _: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    probe::ready_or_why(&api.runtime, &api.readiness).await
}

async fn metrics(api: &AdminParts, _: &Call<'_>, _: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    telemetry::show_readiness(probe::is_ready(&api.runtime, &api.readiness).await);
    Ok(text((api.metrics)()))
}

fn text(metrics: String) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, BoxBody::new(metrics));
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
