//! Rows of the tables of routes: a route and its handler.

use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::route::Route;
use actix_web::HttpResponse;
use futures_util::future::LocalBoxFuture;

/// The function that runs an operation of a listener with the state `A`.
type Handler<A> =
    for<'a> fn(&'a A, &'a Call<'_>, &'a mut Incoming) -> LocalBoxFuture<'a, Result<HttpResponse, ProblemResponse>>;

/// A row of a listener's table.
pub(crate) struct Endpoint<A> {
    pub(crate) route: Route,
    pub(crate) handler: Handler<A>,
}

/// Makes a [`Handler`] of an asynchronous function.
macro_rules! handler {
    ($($function:tt)+) => {
        |api, call, body| Box::pin($($function)+(api, call, body))
    };
}
pub(crate) use handler;

pub(crate) const fn get<A>(template: &'static str, operation: &'static str, handler: Handler<A>) -> Endpoint<A> {
    Endpoint::new("GET", template, operation, handler)
}

pub(crate) const fn post<A>(template: &'static str, operation: &'static str, handler: Handler<A>) -> Endpoint<A> {
    Endpoint::new("POST", template, operation, handler)
}

pub(crate) const fn patch<A>(template: &'static str, operation: &'static str, handler: Handler<A>) -> Endpoint<A> {
    Endpoint::new("PATCH", template, operation, handler)
}

pub(crate) const fn delete<A>(template: &'static str, operation: &'static str, handler: Handler<A>) -> Endpoint<A> {
    Endpoint::new("DELETE", template, operation, handler)
}

impl<A> AsRef<Route> for Endpoint<A> {
    fn as_ref(&self) -> &Route {
        &self.route
    }
}

impl<A> Endpoint<A> {
    const fn new(method: &'static str, template: &'static str, operation: &'static str, handler: Handler<A>) -> Self {
        let route = Route { template, method, operation, is_open: false, decrypts: false, is_probe: false };
        Self { route, handler }
    }

    /// Limits the rate of the operation per network.
    pub(crate) const fn open(self) -> Self {
        Self { route: Route { is_open: true, ..self.route }, handler: self.handler }
    }

    /// Limits the rate of the operation per integration.
    pub(crate) const fn decrypting(self) -> Self {
        Self { route: Route { decrypts: true, ..self.route }, handler: self.handler }
    }

    /// Permits any host name.
    pub(crate) const fn probe(self) -> Self {
        Self { route: Route { is_probe: true, ..self.route }, handler: self.handler }
    }
}
