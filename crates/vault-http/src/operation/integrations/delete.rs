//! `DELETE {base_url}/integrations/<id>`

use super::named;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, precondition};
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::role::Action;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    let integration = named(call.place);
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let delete = async move { integrations.delete(&principal.into(), organization, &integration).await };
    api.complete(call, delete).await?;

    Ok(answer::no_content())
}
