//! `GET {base_url}/accounts`

use super::item;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Action;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    let request = query::page(call.query())?;
    body.ignore().await?;
    let (accounts, limit) = (api.parts.accounts.for_request(call.origin), request.limit);
    let scope = Scope::One(principal.organization);
    let principal = Principal::from(principal);

    let page = api.complete(call, async move { accounts.list(&principal, scope, request).await }).await?;

    answer::page(&api.base.below("/accounts"), &page, limit, item)
}
