//! `PATCH` and `DELETE {base_url}/receivers/<id>`, `POST {base_url}/receivers/<id>/rotate-secret`

use super::{item, named};
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, precondition};
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{ChangeReceiverRequest, IssuedReceiver};
use vault_core::field::{FieldCode, FieldError};
use vault_core::receiver::{EventKinds, ReceiverState};
use vault_core::role::Action;
use vault_core::usecase::receivers::ReceiverEdit;

/// `PATCH {base_url}/receivers/<id>`
pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::ManageReceivers)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    precondition::none_but_existence(call.headers())?;
    let edit = parse(&body.read().await?)?;
    let (receivers, receiver) = (api.parts.receivers.for_request(call.origin), named(call.place));

    let changed = api.complete(call, async move { receivers.change(&principal, receiver, edit).await }).await?;

    answer::object(StatusCode::OK, &item(&changed))
}

fn parse(body: &[u8]) -> Result<ReceiverEdit, ProblemResponse> {
    let (ChangeReceiverRequest { state, events }, mut violations) = wire::read(body)?;
    let state = violations.check("/state", || {
        let wrong = || FieldError::new("/state", FieldCode::OutOfRange, "must be active or disabled");
        state.as_deref().map(|text| ReceiverState::parse(text).ok_or_else(wrong)).transpose()
    });
    violations
        .check_all("/events", || events.as_ref().map(|names| EventKinds::parse(names, true, "/events")).transpose());
    let edit = state.map(|state| ReceiverEdit { state, events });
    violations.finish(edit)
}

/// `DELETE {base_url}/receivers/<id>`
pub(crate) async fn remove(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::ManageReceivers)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    let (receivers, receiver) = (api.parts.receivers.for_request(call.origin), named(call.place));

    api.complete(call, async move { receivers.remove(&principal, receiver).await }).await?;

    Ok(answer::no_content())
}

/// `POST {base_url}/receivers/<id>/rotate-secret`
pub(crate) async fn rotate_secret(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::ManageReceivers)?;
    query::none(call.query())?;
    body.ignore().await?;
    let (receivers, receiver) = (api.parts.receivers.for_request(call.origin), named(call.place));

    let rotate = async move { receivers.replace_secret(&principal, receiver).await };
    let (changed, secret) = api.complete(call, rotate).await?;

    answer::secret(StatusCode::OK, &IssuedReceiver { receiver: item(&changed), secret: Some(secret.into()) })
}
