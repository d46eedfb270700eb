//! Responses that depend on no stored data: console, API reference, OpenAPI document and probes.

use super::{Inner, probe};
use crate::body::Incoming;
use crate::call::Call;
use crate::console::Console;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;

pub(super) async fn console(api: &Inner, _: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    body.ignore().await?;
    Ok(api.console.page())
}

pub(super) async fn docs(_: &Inner, _: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    body.ignore().await?;
    Ok(Console::docs())
}

pub(super) async fn console_file(
    _: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, ProblemResponse> {
    body.ignore().await?;
    Console::file(call.place.id())
}

pub(super) async fn openapi(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, ProblemResponse> {
    query::none(call.query())?;
    body.ignore().await?;
    Ok(answer::json(StatusCode::OK, api.openapi.clone()))
}

pub(super) async fn live(_: &Inner, _: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    body.ignore().await?;
    probe::live()
}

pub(super) async fn ready(api: &Inner, _: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    body.ignore().await?;
    probe::ready(&api.parts.runtime, &api.parts.readiness).await
}
