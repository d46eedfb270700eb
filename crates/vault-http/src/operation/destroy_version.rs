//! `DELETE {base_url}/organization-vault/<credential_id>/versions/<version>`

use super::precondition::Permitted;
use super::{Inner, credential_id, version_number};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::Save)?;
    query::none(call.query())?;
    let permitted = Permitted::by(call.headers())?;
    body.ignore().await?;
    let (id, version) = (credential_id(call.place), version_number(call.place));
    let vault = api.parts.vault.for_request(call.origin);

    let destroying = async move {
        let credential = permitted.of(&vault, &principal, id).await?;
        vault.destroy_version(&principal, credential, version).await
    };
    api.complete(call, destroying).await?;

    Ok(answer::no_content())
}
