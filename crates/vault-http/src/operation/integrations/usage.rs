//! `GET {base_url}/integrations/usage`

use crate::answer::time_text;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::IntegrationUsageItem;
use vault_core::id::IntegrationId;
use vault_core::role::Action;
use vault_core::usecase::integrations::IntegrationUsage;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    let since = query::since(call.query())?;
    body.ignore().await?;
    let integrations = api.parts.integrations.for_request(call.origin);

    let organization = principal.organization;
    let counted = async move { integrations.usage(&principal.into(), organization, since).await };
    let usage = api.complete(call, counted).await?;

    answer::object(StatusCode::OK, &usage.into_iter().map(item).collect::<Vec<_>>())
}

fn item((id, usage): (IntegrationId, IntegrationUsage)) -> IntegrationUsageItem {
    IntegrationUsageItem {
        id: id.to_string(),
        activations: usage.activations,
        last_activated_at: usage.last_activated_at.map(time_text),
        denied: usage.denied,
        last_denied_at: usage.last_denied_at.map(time_text),
    }
}
