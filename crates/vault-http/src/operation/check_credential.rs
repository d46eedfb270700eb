//! `POST {base_url}/organization-vault/<credential_id>/check`

use super::{Inner, credential_id, document};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_api::CheckCredentialRequest;
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::Save)?;
    query::none(call.query())?;
    let version = match document::optional(call, body).await? {
        Some(body) => parse(&body)?,
        None => None,
    };
    let id = credential_id(call.place);
    let vault = api.parts.vault.for_request(call.origin);

    api.complete(call, async move { vault.request_check(&principal, id, version).await }).await?;

    Ok(answer::accepted())
}

/// Parses the optional version number. The use case checks whether the version exists.
pub(crate) fn parse(body: &[u8]) -> Result<Option<i64>, ProblemResponse> {
    document::parse::<CheckCredentialRequest>(body).map(|request| request.version)
}
