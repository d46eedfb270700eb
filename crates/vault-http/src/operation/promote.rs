//! `POST {base_url}/organization-vault/<credential_id>/promote`

use super::precondition::Permitted;
use super::{Inner, credential_id, document, shown};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::PromoteRequest;
use vault_core::Error;
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::Save)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let permitted = Permitted::by(call.headers())?;
    let version = parse(&body.read().await?)?;
    let id = credential_id(call.place);
    let vault = api.parts.vault.for_request(call.origin);

    let promoting = async move {
        let credential = permitted.of(&vault, &principal, id).await?;
        let made = vault.promote(&principal, credential, version).await?.revision;
        Ok::<_, Error>((made, vault.show(&principal, id).await?))
    };
    let (made, credential) = api.complete(call, promoting).await?;

    answer::tagged_as_made(answer::json(StatusCode::OK, shown::credential(&credential)), made, credential.revision)
}

/// Parses the version number. The use case checks whether the version exists.
pub(crate) fn parse(body: &[u8]) -> Result<i64, ProblemResponse> {
    document::parse::<PromoteRequest>(body).map(|request| request.version)
}
