//! `POST {base_url}/activations/<id>/renew`

use super::Inner;
use super::begin::started;
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
    // An invalid ID is handled like that of an activation that does not exist.
    let activation = call.place.id().parse().unwrap_or(ActivationId::from_bytes(NO_ID));
    let activations = api.parts.activations.for_request(call.origin);

    // Only the activation's row shows whether the renewal needs a storage provider, so acquire the permit in any case.
    let permit = api.ask_stores(&principal)?;
    let renewing = async move {
        let _permit = permit;
        activations.renew(&principal, RenewalRequest { activation, ttl }).await
    };
    let renewed = api.complete(call, renewing).await?;

    answer::secret(StatusCode::OK, &started(&renewed)?)
}

pub(crate) fn parse(body: &[u8]) -> Result<ActivationTtl, ProblemResponse> {
    let (RenewRequest { ttl }, mut violations) = wire::read(body)?;
    let ttl = violations.check("/ttl", || ActivationTtl::parse(ttl));
    violations.finish(ttl)
}
