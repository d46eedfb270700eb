//! `{base}/receivers`: receivers of notifications, which admins of an organization manage.

use crate::body::{Body, ValueErrors};
use crate::caller::Caller;
use crate::extract::Id;
use crate::extract::NoEntityTag;
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::query::PageQuery;
use crate::respond::{JsonResult, JsonStatusResult, NoContent, accepted, created, no_content, ok, page, time_text};
use crate::routes::{Access, Endpoint, route};
use actix_web::HttpResponse;
use actix_web::web::Data;
use vault_api::{ChangeReceiverRequest, DeliveryItem, IssuedReceiver, ReceiverItem};
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::{EventId, ReceiverId};
use vault_core::receiver::{
    Channel, DeliveryFailure, DeliveryState, EventDelivery, EventKinds, ReceiverState, StoredReceiver,
};
use vault_core::role::Action;
use vault_core::usecase::receivers::{AddReceiverRequest, ReceiverEdit};

const ADMINS: Access = Access::Role(Action::ManageReceivers);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        route("GET", "{base}/receivers", "list-receivers", ADMINS, list),
        route("POST", "{base}/receivers", "add-receiver", ADMINS, add),
        route("PATCH", "{base}/receivers/{id}", "change-receiver", ADMINS, change),
        route("DELETE", "{base}/receivers/{id}", "remove-receiver", ADMINS, remove),
        route("POST", "{base}/receivers/{id}/rotate-secret", "rotate-receiver-secret", ADMINS, rotate_secret),
        route("POST", "{base}/receivers/{id}/test", "test-receiver", ADMINS, test),
        route("GET", "{base}/receivers/{id}/deliveries", "list-deliveries", ADMINS, deliveries).with_query(),
        route("POST", "{base}/receivers/{id}/deliveries/{delivery}/resend", "resend-event", ADMINS, resend),
    ]
}

async fn list(caller: Caller, api: Data<PublicApi>) -> JsonResult<Vec<ReceiverItem>> {
    let receivers = api.parts.receivers.for_request(caller.origin);
    let listed = caller.run(|principal| async move { receivers.list(&principal).await }).await?;
    ok(listed.iter().map(item).collect())
}

async fn add(
    caller: Caller,
    api: Data<PublicApi>,
    Body(body): Body<vault_api::AddReceiverRequest>,
) -> JsonStatusResult<IssuedReceiver> {
    let request = new_receiver(body, caller.organization().is_ok())?;
    let receivers = api.parts.receivers.for_request(caller.origin);
    let added = caller.run(|principal| async move { receivers.add(&principal, request).await }).await?;
    created(IssuedReceiver { receiver: item(&added.receiver), secret: added.secret.map(Into::into) })
}

/// The use case validates the address, and the events again.
fn new_receiver(
    body: vault_api::AddReceiverRequest,
    of_organization: bool,
) -> Result<AddReceiverRequest, ProblemResponse> {
    let vault_api::AddReceiverRequest { kind, url, to, events } = body;
    let mut errors = ValueErrors::default();
    let unknown = || FieldError::new("/kind", FieldCode::OutOfRange, "must be webhook or email");
    let channel = errors.check(Channel::parse(&kind).ok_or_else(unknown));
    let events = events.unwrap_or_default();
    errors.check_all(EventKinds::parse(&events, of_organization, "/events"));
    let address = channel.and_then(|channel| {
        let (wanted, given, other, surplus) = match channel {
            Channel::Webhook => ("/url", url, "/to", to),
            Channel::Email => ("/to", to, "/url", url),
        };
        if surplus.is_some() {
            let detail = format!("is not a field of a receiver of kind {}", channel.as_str());
            errors.check::<()>(Err(FieldError::new(other, FieldCode::Unknown, detail)));
        }
        let missing = || FieldError::new(wanted, FieldCode::Required, format!("is required for {}", channel.as_str()));
        errors.check(given.ok_or_else(missing))
    });
    errors.finish(channel.zip(address).map(|(channel, address)| AddReceiverRequest { channel, address, events }))
}

async fn change(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<ReceiverId>,
    _: NoEntityTag,
    Body(body): Body<ChangeReceiverRequest>,
) -> JsonResult<ReceiverItem> {
    let wrong = || FieldError::new("/state", FieldCode::OutOfRange, "must be active or disabled");
    let (mut errors, of_organization) = (ValueErrors::default(), caller.organization().is_ok());
    let state = body.state.map(|text| ReceiverState::parse(&text).ok_or_else(wrong)).transpose();
    let state = errors.check(state);
    errors
        .check_all(body.events.as_ref().map(|names| EventKinds::parse(names, of_organization, "/events")).transpose());
    let edit = errors.finish(state.map(|state| ReceiverEdit { state, events: body.events }))?;
    let receivers = api.parts.receivers.for_request(caller.origin);
    let changed = caller.run(|principal| async move { receivers.change(&principal, id, edit).await }).await?;
    ok(item(&changed))
}

async fn remove(caller: Caller, api: Data<PublicApi>, Id(id): Id<ReceiverId>, _: NoEntityTag) -> NoContent {
    let receivers = api.parts.receivers.for_request(caller.origin);
    caller.run(|principal| async move { receivers.remove(&principal, id).await }).await.map(no_content)
}

async fn rotate_secret(caller: Caller, api: Data<PublicApi>, Id(id): Id<ReceiverId>) -> JsonResult<IssuedReceiver> {
    let receivers = api.parts.receivers.for_request(caller.origin);
    let rotate = |principal| async move { receivers.replace_secret(&principal, id).await };
    let (changed, secret) = caller.run(rotate).await?;
    ok(IssuedReceiver { receiver: item(&changed), secret: Some(secret.into()) })
}

async fn test(caller: Caller, api: Data<PublicApi>, Id(id): Id<ReceiverId>) -> JsonStatusResult<DeliveryItem> {
    let receivers = api.parts.receivers.for_request(caller.origin);
    let queued = caller.run(|principal| async move { receivers.test(&principal, id).await }).await?;
    accepted(delivery(&queued))
}

async fn deliveries(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<ReceiverId>,
    PageQuery(request): PageQuery,
) -> Result<HttpResponse, ProblemResponse> {
    let (receivers, limit) = (api.parts.receivers.for_request(caller.origin), request.limit);
    let list = |principal| async move { receivers.deliveries(&principal, id, request).await };
    let listed = caller.run(list).await?;
    page(&api.common.base.below(&format!("/receivers/{id}/deliveries")), &listed, limit, delivery)
}

async fn resend(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<ReceiverId>,
    Id(event): Id<EventId>,
) -> JsonStatusResult<DeliveryItem> {
    let receivers = api.parts.receivers.for_request(caller.origin);
    let queued = caller.run(|principal| async move { receivers.resend(&principal, id, event).await }).await?;
    accepted(delivery(&queued))
}

/// Converts a receiver.
fn item(stored: &StoredReceiver) -> ReceiverItem {
    let receiver = &stored.receiver;
    let shown = |channel| Some(receiver.shown.clone()).filter(|_| receiver.channel == channel);
    ReceiverItem {
        id: stored.key.id.to_string(),
        kind: receiver.channel.as_str().to_owned(),
        url: shown(Channel::Webhook),
        to: shown(Channel::Email),
        events: receiver.events.iter().map(|kind| kind.as_str().to_owned()).collect(),
        state: stored.shown_state().to_owned(),
        created_at: time_text(receiver.created_at),
        last_delivered_at: stored.status.last_delivered_at.map(time_text),
        last_error: stored.status.last_failure.map(DeliveryFailure::as_str).map(str::to_owned),
    }
}

/// Converts a delivery.
fn delivery(delivery: &EventDelivery) -> DeliveryItem {
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
