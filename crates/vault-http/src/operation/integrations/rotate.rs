//! `POST {base_url}/integrations/<id>/rotate`

use super::{issued, named};
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, document, precondition};
use crate::problem_response::ProblemResponse;
use crate::{answer, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::RotateIntegrationRequest;
use vault_core::integration::Overlap;
use vault_core::role::Action;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    let overlap = match document::optional(call, body).await? {
        Some(body) => parse(&body)?,
        None => Overlap::DEFAULT,
    };
    let integration = named(call.place);
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let rotate = async move { integrations.rotate(&principal.into(), organization, &integration, overlap).await };
    let (rotated, token) = api.complete(call, rotate).await?;

    answer::secret(StatusCode::OK, &issued(&rotated, Some(&token)))
}

/// Parses the remaining validity of the current token, or returns the default.
pub(crate) fn parse(body: &[u8]) -> Result<Overlap, ProblemResponse> {
    let (RotateIntegrationRequest { overlap }, mut violations) = wire::read(body)?;
    let overlap = violations.check("/overlap", || Overlap::parse(overlap, "/overlap"));
    violations.finish(overlap)
}
