//! `DELETE {base_url}/account/sessions/<id>`

use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, NO_ID, precondition};
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::id::SessionId;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session(call)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    // An invalid ID is handled like that of a session that does not exist.
    let session = call.place.id().parse().unwrap_or(SessionId::from_bytes(NO_ID));
    let accounts = api.parts.accounts.for_request(call.origin);

    api.complete(call, async move { accounts.end_session(&principal, session).await }).await?;

    Ok(answer::no_content())
}
