//! `GET /livez` and `GET /readyz`: no versions, names or numbers.

use super::complete;
use crate::answer;
use crate::fault::Fault;
use crate::parts::Readiness;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long finding out may take; past it, something is not ready.
const DEADLINE: Duration = Duration::from_secs(3);

/// The process answers.
pub(crate) fn live() -> HttpResponse {
    ok()
}

/// Everything that requests need is there.
pub(crate) async fn ready(runtime: &Handle, readiness: &Readiness) -> Result<HttpResponse, Fault> {
    let readiness = Arc::clone(readiness);
    let found = complete(runtime, async move { timeout(DEADLINE, readiness()).await }).await?;
    if found == Ok(true) { Ok(ok()) } else { Err(Fault::unavailable(5)) }
}

fn ok() -> HttpResponse {
    answer::json(StatusCode::OK, b"{\"status\":\"ok\"}".to_vec())
}
