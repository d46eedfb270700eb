//! `GET {base_url}/organization-vault/<credential_id>/activations`

use super::{Inner, credential_id};
use crate::answer::{self, time_text};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::query;
use actix_web::HttpResponse;
use vault_core::port::CredentialUse;
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::Save)?;
    let request = query::page(call.query())?;
    body.ignore().await?;
    let id = credential_id(call.place);
    let (vault, limit) = (api.parts.vault.for_request(call.origin), request.limit);

    let page = api.complete(call, async move { vault.uses(&principal, id, request).await }).await?;

    let path = api.base.below(&format!("/organization-vault/{id}/activations"));
    answer::page(&path, &page, limit, item)
}

fn item(used: &CredentialUse) -> vault_api::CredentialUse {
    let by_id = || used.integration.to_string();
    vault_api::CredentialUse {
        integration: used.name.as_ref().map_or_else(by_id, ToString::to_string),
        at: time_text(used.at),
        expires_at: time_text(used.expires_at),
        ended_at: used.ended_at.map(time_text),
        version: used.version,
        form: used.form.as_str().to_owned(),
        purpose: used.purpose.as_ref().map(|purpose| purpose.as_str().to_owned()),
        workload: used.workload.clone(),
    }
}
