//! Settings and authorization of a listener.

use crate::head::HostNames;
use crate::limits::Throttle;
use crate::problem::ProblemResponse;
use crate::routes::Route;
use crate::settings::{BasePath, Deadlines, ListenerSettings};
use actix_web::HttpRequest;
use futures_util::future::LocalBoxFuture;
use ipnet::IpNet;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;

/// A listener. Each one has its own type, so that a handler of the activation listener cannot be registered at the public
/// one.
pub(crate) trait Listener: Send + Sync {
    fn common(&self) -> &Common;

    /// Authorizes a request, and adds its [`Caller`](crate::caller::Caller) to the request's extensions. Reads no body.
    fn authorize<'a>(
        &'a self,
        route: Route,
        request: &'a HttpRequest,
    ) -> LocalBoxFuture<'a, Result<(), ProblemResponse>>;
}

/// Settings and state that every listener has.
pub(crate) struct Common {
    pub(crate) base: BasePath,
    pub(crate) runtime: Handle,
    pub(crate) ids: Arc<dyn IdGenerator>,
    pub(crate) hosts: HostNames,
    pub(crate) deadlines: Deadlines,
    pub(crate) over_tls: bool,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) throttle: Throttle,
}

impl Common {
    pub(crate) fn new(
        settings: &ListenerSettings,
        base: BasePath,
        runtime: &Handle,
        ids: &Arc<dyn IdGenerator>,
    ) -> Self {
        Self {
            base,
            runtime: runtime.clone(),
            ids: Arc::clone(ids),
            hosts: HostNames::of(settings),
            deadlines: settings.deadlines,
            over_tls: settings.tls.is_some(),
            trusted_proxies: settings.trusted_proxies.clone(),
            throttle: Throttle::default(),
        }
    }
}

/// Returns the listener that received a request.
pub(crate) fn of(request: &HttpRequest) -> &Arc<dyn Listener> {
    request.app_data().unwrap_or_else(|| unreachable!("every app has its listener as data"))
}
