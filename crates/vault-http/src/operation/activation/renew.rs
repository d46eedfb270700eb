//! `POST {base_url}/activations/<id>/renew`

use super::Inner;
use super::begin::begun;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::NO_ID;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::RenewRequest;
use vault_core::activation::ActivationTtl;
use vault_core::id::ActivationId;
use vault_core::usecase::activations::RenewalRequest;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.integration(call).await?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let ttl = parse(&body.read().await?)?;
    // Text that is no id stands for an activation that is not there.
    let activation = call.place.id().parse().unwrap_or(ActivationId::from_bytes(NO_ID));
    let activations = api.parts.activations.clone();

    // Only the activation's row says whether storage providers are asked.
    let permit = api.ask_stores(&principal)?;
    let renewing = async move {
        let _permit = permit;
        activations.renew(&principal, RenewalRequest { activation, ttl }).await
    };
    let renewed = api.complete(renewing).await?;

    answer::secret(StatusCode::OK, &begun(&renewed)?)
}

pub(crate) fn parse(body: &[u8]) -> Result<ActivationTtl, ProblemResponse> {
    let (RenewRequest { ttl }, mut flaws) = wire::read(body)?;
    let ttl = flaws.check("/ttl", || ActivationTtl::parse(ttl));
    flaws.finish(ttl)
}
