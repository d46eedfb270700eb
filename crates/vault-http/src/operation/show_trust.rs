//! `GET {base_url}/organization-vault/<credential_id>/trust`

use super::{Inner, credential_id};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{ProviderTrust, ProviderTrustStep};
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::List)?;
    query::none(call.query())?;
    body.ignore().await?;
    let id = credential_id(call.place);
    let vault = api.parts.vault.for_request(call.origin);

    let trust = api.complete(call, async move { vault.trust(&principal, id).await }).await?;

    let steps = trust.steps.into_iter();
    let trust = ProviderTrust {
        issuer: trust.issuer.to_string(),
        subject: trust.subject.to_string(),
        audience: trust.audience.to_string(),
        steps: steps
            .map(|step| ProviderTrustStep { title: step.title, language: step.language.to_owned(), text: step.text })
            .collect(),
    };
    answer::object(StatusCode::OK, &trust)
}
