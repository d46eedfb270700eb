//! `DELETE {base_url}/activations/<id>`

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{NO_ID, precondition};
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::id::ActivationId;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.integration(call).await?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    // An invalid ID is handled like that of an activation that does not exist.
    let activation = call.place.id().parse().unwrap_or(ActivationId::from_bytes(NO_ID));
    let activations = api.parts.activations.for_request(call.origin);

    api.complete(call, async move { activations.end(&principal, activation).await }).await?;

    Ok(answer::no_content())
}
