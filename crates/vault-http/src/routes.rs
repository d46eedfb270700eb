//! The table of routes, and the checks before a handler: host name, caller, role, query. Extractors run after them.

use crate::caller::RequestId;
use crate::listener::{self, Listener};
use crate::problem::ProblemResponse;
use crate::query;
use crate::telemetry::{self, RequestSpans};
use actix_web::body::{BodySize, BoxBody, MessageBody as _};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::guard::fn_guard;
use actix_web::http::header::{CONTENT_ENCODING, ContentEncoding, TryIntoHeaderValue as _};
use actix_web::middleware::{Compress, Next, from_fn};
use actix_web::{Error, FromRequest, Handler, HttpMessage as _, HttpRequest, Responder, web};
use futures_util::FutureExt as _;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tracing::{Instrument as _, Span};
use vault_core::role::Action;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Anyone, under any host name.
    Probe,
    /// Anyone.
    Public,
    /// Anyone, at a limited rate per network, because the operation is expensive.
    Limited,
    /// A session of any role.
    Session,
    /// A session whose role permits the action.
    Role(Action),
    /// An integration.
    Integration {
        /// Whether the operation decrypts credentials, so that its rate is limited per integration.
        decrypts: bool,
    },
}

/// A method at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// HTTP method. `HEAD` is not listed separately: it is `GET` without the body.
    pub method: &'static str,
    /// Path with placeholders: `{base}/organization-vault/{id}`. Each is a whole segment.
    pub template: &'static str,
    /// Name of the operation in metrics and log lines.
    pub operation: &'static str,
    /// Who may call it.
    pub access: Access,
    takes_query: bool,
}

/// A route and its handler.
pub(crate) struct Endpoint {
    pub(crate) route: Route,
    build: Box<dyn FnOnce(Route) -> actix_web::Route>,
}

/// Adds the routes to an app. The framework uses only the first resource that matches a path, so each template has one.
/// They are in order of their templates, in which literal segments precede placeholders.
pub(crate) fn configure(config: &mut web::ServiceConfig, base: &str, endpoints: Vec<Endpoint>) {
    let mut paths: BTreeMap<&str, Vec<Endpoint>> = BTreeMap::new();
    for endpoint in endpoints {
        paths.entry(endpoint.route.template).or_default().push(endpoint);
    }
    for (template, endpoints) in paths {
        let methods = endpoints
            .iter()
            .map(|Endpoint { route, .. }| if route.method == "GET" { "GET, HEAD" } else { route.method });
        let allow = methods.collect::<Vec<_>>().join(", ");
        let mut resource = web::resource(template.replace("{base}", base));
        for endpoint in endpoints {
            resource = resource.route((endpoint.build)(endpoint.route));
        }
        config.service(resource.default_service(web::to(move |request: HttpRequest| {
            let problem = ProblemResponse::method_not_allowed(&allow);
            async move { Err::<(), _>(unrouted(&request, problem)) }
        })));
    }
    let unknown = |request: HttpRequest| async move { Err::<(), _>(unrouted(&request, ProblemResponse::not_found())) };
    config.default_service(web::to(unknown));
}

/// Returns the problem of a request without a route, unless its host name is unknown.
fn unrouted(request: &HttpRequest, problem: ProblemResponse) -> ProblemResponse {
    listener::of(request).common().hosts.check(request).err().unwrap_or(problem)
}

/// Creates the endpoint of `method`.
pub(crate) fn route<H, A>(
    method: &'static str,
    template: &'static str,
    operation: &'static str,
    access: Access,
    handler: H,
) -> Endpoint
where
    H: Handler<A, Output: Responder + 'static>,
    A: FromRequest + 'static,
{
    let build = move |route: Route| {
        let is = move |found: &str| found == route.method || (route.method == "GET" && found == "HEAD");
        let action = web::route().guard(fn_guard(move |context| is(context.head().method.as_str()))).to(handler);
        // Only requests with other methods return secrets, so that no compressed body contains one (BREACH).
        let action = match route.method {
            "GET" => action.wrap(from_fn(keep_small)).wrap(Compress::default()),
            _ => action,
        };
        action.wrap(from_fn(move |request, next| gate(route, request, next)))
    };
    let route = Route { method, template, operation, access, takes_query: false };
    Endpoint { route, build: Box::new(build) }
}

impl Endpoint {
    /// Permits a query, which an extractor of the handler parses, or which is ignored.
    pub(crate) fn with_query(self) -> Self {
        Self { route: Route { takes_query: true, ..self.route }, ..self }
    }
}

/// Excludes bodies below 1 KiB from compression. The common middleware removes the header.
async fn keep_small(request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse, Error> {
    let mut response = next.call(request).await?;
    if !matches!(response.response().body().size(), BodySize::Sized(1_024..)) {
        response.headers_mut().insert(CONTENT_ENCODING, ContentEncoding::Identity.try_into_value()?);
    }
    Ok(response)
}

/// Runs the checks that precede every handler, then the handler. Responds to panics, whose message may contain secrets: only
/// the panic hook prints it.
async fn gate(route: Route, request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse, Error> {
    let head = request.request().clone();
    let listener = Arc::clone(listener::of(&head));
    let id = head.extensions().get::<RequestId>().map(|id| id.0).unwrap_or_default();
    let operation = telemetry::operation_span(route.operation, &head, &id.to_string());
    let spans = RequestSpans { request: Span::current(), operation: operation.clone() };
    head.extensions_mut().insert(route);
    head.extensions_mut().insert(spans);
    let checked = checked(&*listener, route, request, next).instrument(operation.clone());
    let panicked = |_| Ok(ServiceResponse::from_err(ProblemResponse::internal().caused_by("a handler panicked"), head));
    let response = AssertUnwindSafe(checked).catch_unwind().await.unwrap_or_else(panicked)?;
    telemetry::record_status(&operation, response.status().as_u16());
    let problem = response.response().error().and_then(|error| error.as_error::<ProblemResponse>());
    if route.access == Access::Limited && problem.is_some_and(ProblemResponse::asks_to_wait) {
        listener.common().throttle.delay().await;
    }
    Ok(response)
}

async fn checked(
    listener: &dyn Listener,
    route: Route,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    match check(listener, route, request.request()).await {
        Ok(()) => next.call(request).await,
        // The outer middleware would get an error without its request.
        Err(problem) => Ok(request.error_response(problem)),
    }
}

/// Checks host, caller, role and query, in this order.
async fn check(listener: &dyn Listener, route: Route, request: &HttpRequest) -> Result<(), ProblemResponse> {
    if route.access != Access::Probe {
        listener.common().hosts.check(request)?;
    }
    listener.authorize(route, request).await?;
    if route.takes_query { Ok(()) } else { query::none(request.uri().query()) }
}

#[cfg(test)]
mod tests {
    use crate::{Route, activation_routes, routes};
    use std::collections::HashSet;

    #[test]
    fn operations_are_unique() {
        for routes in [routes().collect::<Vec<_>>(), activation_routes().collect()] {
            let names: HashSet<_> = routes.iter().map(|route: &Route| route.operation).collect();
            let methods: HashSet<_> = routes.iter().map(|route| (route.template, route.method)).collect();
            assert_eq!((names.len(), methods.len()), (routes.len(), routes.len()));
        }
    }
}
