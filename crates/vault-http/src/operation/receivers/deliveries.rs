//! `POST {base_url}/receivers/<id>/test`, `GET {base_url}/receivers/<id>/deliveries` and
//! `POST {base_url}/receivers/<id>/deliveries/<delivery>/resend`

use super::named;
use crate::answer::time_text;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, NO_ID};
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::DeliveryItem;
use vault_core::id::EventId;
use vault_core::receiver::{DeliveryFailure, DeliveryState, EventDelivery};
use vault_core::role::Action;

/// `POST {base_url}/receivers/<id>/test`
pub(crate) async fn test(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::ManageReceivers)?;
    query::none(call.query())?;
    body.ignore().await?;
    let (receivers, receiver) = (api.parts.receivers.for_request(call.origin), named(call.place));

    let delivery = api.complete(call, async move { receivers.test(&principal, receiver).await }).await?;

    answer::object(StatusCode::ACCEPTED, &item(&delivery))
}

/// `GET {base_url}/receivers/<id>/deliveries`
pub(crate) async fn list(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::ManageReceivers)?;
    let request = query::page(call.query())?;
    body.ignore().await?;
    let (receivers, receiver, limit) = (api.parts.receivers.for_request(call.origin), named(call.place), request.limit);

    let page = api.complete(call, async move { receivers.deliveries(&principal, receiver, request).await }).await?;

    answer::page(&api.base.below(&format!("/receivers/{receiver}/deliveries")), &page, limit, item)
}

/// `POST {base_url}/receivers/<id>/deliveries/<delivery>/resend`
pub(crate) async fn resend(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::ManageReceivers)?;
    query::none(call.query())?;
    body.ignore().await?;
    let (receivers, receiver) = (api.parts.receivers.for_request(call.origin), named(call.place));
    let event = call.place.version().parse().unwrap_or(EventId::from_bytes(NO_ID));

    let delivery = api.complete(call, async move { receivers.resend(&principal, receiver, event).await }).await?;

    answer::object(StatusCode::ACCEPTED, &item(&delivery))
}

/// Converts a delivery.
pub fn item(delivery: &EventDelivery) -> DeliveryItem {
    let waits = delivery.state == DeliveryState::Waiting;
    DeliveryItem {
        id: delivery.id.to_string(),
        kind: delivery.kind.as_str().to_owned(),
        timestamp: time_text(delivery.at),
        state: delivery.state.as_str().to_owned(),
        attempts: delivery.attempts,
        last_attempt_at: delivery.attempted_at.map(time_text),
        next_attempt_at: waits.then(|| time_text(delivery.next_at)),
        last_error: delivery.failure.map(DeliveryFailure::as_str).map(str::to_owned),
    }
}
