//! `DELETE {base_url}/organization-vault/<credential_id>`

use super::precondition::Permitted;
use super::{Inner, credential_id};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::Delete)?;
    query::none(call.query())?;
    let permitted = Permitted::by(call.headers())?;
    body.ignore().await?;
    let id = credential_id(call.place);
    let vault = api.parts.vault.for_request(call.origin);

    let deleting = async move {
        let credential = permitted.of(&vault, &principal, id).await?;
        vault.delete(&principal, credential).await
    };
    api.complete(call, deleting).await?;

    Ok(answer::no_content())
}
