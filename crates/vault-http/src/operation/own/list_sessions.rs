//! `GET {base_url}/account/sessions`

use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::SessionItem;
use vault_core::id::SessionId;
use vault_core::session::StoredSession;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session(call)?;
    query::none(call.query())?;
    body.ignore().await?;
    let (accounts, current) = (api.parts.accounts.for_request(call.origin), principal.session);

    let sessions = api.complete(call, async move { accounts.sessions(&principal).await }).await?;

    answer::object(StatusCode::OK, &sessions.into_iter().map(|listed| item(listed, current)).collect::<Vec<_>>())
}

fn item(listed: StoredSession, current: SessionId) -> SessionItem {
    let StoredSession { session, last_used_at } = listed;
    SessionItem {
        id: session.id.to_string(),
        created_at: answer::time_text(session.created_at),
        expires_at: answer::time_text(session.expires_at),
        last_used_at: answer::time_text(last_used_at),
        network: session.network,
        client: session.client,
        current: session.id == current,
    }
}
