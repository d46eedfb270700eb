//! `GET /livez` and `GET /readyz`. Only operators get versions, names or numbers.

use crate::answer;
use crate::completion::complete;
use crate::problem_response::ProblemResponse;
use crate::readiness::Readiness;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use tokio::runtime::Handle;
use vault_api::ProbeStatus;

/// Value of `Retry-After` in seconds.
const NOT_READY_RETRY: u32 = 5;

/// Succeeds if the process responds.
pub(crate) fn live() -> Result<HttpResponse, ProblemResponse> {
    ok()
}

/// Succeeds if everything that requests need is available.
pub(crate) async fn ready(runtime: &Handle, readiness: &Readiness) -> Result<HttpResponse, ProblemResponse> {
    match complete(runtime, readiness.clone().find_out()).await {
        Ok(()) => ok(),
        Err(_) => Err(ProblemResponse::unavailable(NOT_READY_RETRY)),
    }
}

/// Returns whether everything that requests need is available.
pub(crate) async fn is_ready(runtime: &Handle, readiness: &Readiness) -> bool {
    complete(runtime, readiness.clone().find_out()).await.is_ok()
}

/// Same as [`ready`] for operators, with the reason of a failure.
pub(crate) async fn ready_or_why(runtime: &Handle, readiness: &Readiness) -> Result<HttpResponse, ProblemResponse> {
    match complete(runtime, readiness.clone().find_out()).await {
        Ok(()) => ok(),
        Err(reason) => Err(ProblemResponse::unavailable(NOT_READY_RETRY).saying(format!("Not ready: {reason}."))),
    }
}

fn ok() -> Result<HttpResponse, ProblemResponse> {
    answer::object(StatusCode::OK, &ProbeStatus { status: "ok".into() })
}
