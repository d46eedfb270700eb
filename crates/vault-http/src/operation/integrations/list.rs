//! `GET {base_url}/integrations`

use super::item;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::principal::Scope;
use vault_core::role::Action;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    let request = query::page(call.query())?;
    body.ignore().await?;
    let (integrations, limit) = (api.parts.integrations.for_request(call.origin), request.limit);

    let scope = Scope::One(principal.organization);
    let page = api.complete(call, async move { integrations.list(&principal.into(), scope, request).await }).await?;

    let now = api.parts.integrations.now();
    answer::page(&api.base.below("/integrations"), &page, limit, |stored| item(stored, now))
}
