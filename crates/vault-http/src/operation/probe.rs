//! `GET /livez` and `GET /readyz`: no versions, names or numbers.

use super::complete;
use crate::answer;
use crate::fault::Fault;
use crate::readiness::Readiness;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use tokio::runtime::Handle;
use vault_api::ProbeStatus;

/// The process answers.
pub(crate) fn live() -> Result<HttpResponse, Fault> {
    ok()
}

/// Everything that requests need is available.
pub(crate) async fn ready(runtime: &Handle, readiness: &Readiness) -> Result<HttpResponse, Fault> {
    if complete(runtime, readiness.clone().find_out()).await? { ok() } else { Err(Fault::unavailable(5)) }
}

fn ok() -> Result<HttpResponse, Fault> {
    answer::object(StatusCode::OK, &ProbeStatus { status: "ok".into() })
}
