//! `/livez` and `/readyz` of all listeners. Only operators get versions, names or numbers.

use crate::caller::complete;
use crate::listener::Listener;
use crate::problem::ProblemResponse;
use crate::readiness::Readiness;
use crate::respond::{JsonResult, ok};
use crate::routes::{Access, Endpoint, route};
use actix_web::web;
use std::future::Future;
use vault_api::ProbeStatus;

/// Value of `Retry-After` in seconds.
const NOT_READY_RETRY: u32 = 5;

/// A listener with probes.
pub(crate) trait Probed: Listener + 'static {
    /// True if a response may contain the reason why the server is not ready.
    const GIVES_REASON: bool = false;

    fn readiness(&self) -> &Readiness;
}

/// The probes of a listener with the state `A`.
pub(crate) fn endpoints<A: Probed>() -> Vec<Endpoint> {
    vec![
        route("GET", "/livez", "live", Access::Probe, live).with_query(),
        route("GET", "/readyz", "ready", Access::Probe, ready::<A>).with_query(),
    ]
}

/// Succeeds if the process responds.
async fn live() -> JsonResult<ProbeStatus> {
    ok(ProbeStatus { status: "ok".into() })
}

/// Succeeds if everything that requests need is available.
async fn ready<A: Probed>(api: web::Data<A>) -> JsonResult<ProbeStatus> {
    match find_out(&**api).await {
        Ok(()) => live().await,
        Err(reason) if A::GIVES_REASON => {
            Err(ProblemResponse::unavailable(NOT_READY_RETRY).saying(format!("Not ready: {reason}.")))
        }
        Err(_) => Err(ProblemResponse::unavailable(NOT_READY_RETRY)),
    }
}

/// Returns whether everything that requests need is available, or the reason why not.
pub(crate) fn find_out(api: &impl Probed) -> impl Future<Output = Result<(), String>> {
    complete(&api.common().runtime, api.readiness().clone().find_out())
}
