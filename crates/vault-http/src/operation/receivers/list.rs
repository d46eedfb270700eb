//! `GET {base_url}/receivers`

use super::item;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_core::role::Action;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::ManageReceivers)?;
    query::none(call.query())?;
    body.ignore().await?;
    let receivers = api.parts.receivers.for_request(call.origin);

    let listed = api.complete(call, async move { receivers.list(&principal).await }).await?;

    answer::object(StatusCode::OK, &listed.iter().map(item).collect::<Vec<_>>())
}
