//! The admin listener: metrics and probes. It must not have a public address.

use crate::listener::{Common, Listener};
use crate::problem::ProblemResponse;
use crate::readiness::Readiness;
use crate::routes::{Access, Endpoint, Route, route};
use crate::server::{BoundServer, serve};
use crate::settings::{AdminSettings, BasePath};
use crate::subject::probes::{self, Probed};
use crate::telemetry;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::future::LocalBoxFuture;
use std::future::ready;
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
    let common = Common::new(&settings.listener, BasePath::default(), &parts.runtime, &parts.ids);
    serve(&settings.listener, None, Arc::new(AdminApi { common, parts }), endpoints)
}

fn endpoints() -> Vec<Endpoint> {
    let metrics = route("GET", "/metrics", "metrics", Access::Public, metrics).with_query();
    probes::endpoints::<AdminApi>().into_iter().chain([metrics]).collect()
}

/// The state of the admin listener.
struct AdminApi {
    common: Common,
    parts: AdminParts,
}

impl Listener for AdminApi {
    fn common(&self) -> &Common {
        &self.common
    }

    /// Its address is the authorization.
    fn authorize<'a>(&'a self, _: Route, _: &'a HttpRequest) -> LocalBoxFuture<'a, Result<(), ProblemResponse>> {
        Box::pin(ready(Ok(())))
    }
}

impl Probed for AdminApi {
    const GIVES_REASON: bool = true;

    fn readiness(&self) -> &Readiness {
        &self.parts.readiness
    }
}

async fn metrics(api: Data<AdminApi>) -> HttpResponse {
    telemetry::show_readiness(probes::find_out(&**api).await.is_ok());
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body((api.parts.metrics)())
}
