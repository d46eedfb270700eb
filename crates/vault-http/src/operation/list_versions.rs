//! `GET {base_url}/organization-vault/<credential_id>/versions`

use super::{Inner, credential_id, shown};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::List)?;
    query::none(call.query())?;
    body.ignore().await?;
    let id = credential_id(call.place);
    let vault = api.parts.vault.for_request(call.origin);

    let versions = api.complete(call, async move { vault.versions(&principal, id).await }).await?;

    Ok(answer::json(StatusCode::OK, shown::versions(&versions)))
}
