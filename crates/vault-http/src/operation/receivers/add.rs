//! `POST {base_url}/receivers`

use super::item;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::IssuedReceiver;
use vault_core::field::{FieldCode, FieldError};
use vault_core::receiver::{Channel, EventKinds};
use vault_core::role::Action;
use vault_core::usecase::receivers::AddReceiverRequest;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::ManageReceivers)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let request = parse(&body.read().await?)?;
    let receivers = api.parts.receivers.for_request(call.origin);

    let added = api.complete(call, async move { receivers.add(&principal, request).await }).await?;

    let secret = added.secret.map(Into::into);
    answer::secret(StatusCode::CREATED, &IssuedReceiver { receiver: item(&added.receiver), secret })
}

/// The use case validates address and events again, because commands call it too.
fn parse(body: &[u8]) -> Result<AddReceiverRequest, ProblemResponse> {
    let (vault_api::AddReceiverRequest { kind, url, to, events }, mut violations) = wire::read(body)?;
    let channel = violations.check("/kind", || {
        let detail = "must be webhook or email";
        Channel::parse(&kind).ok_or_else(|| FieldError::new("/kind", FieldCode::OutOfRange, detail))
    });
    let events = events.unwrap_or_default();
    violations.check_all("/events", || EventKinds::parse(&events, true, "/events"));
    let address = channel.and_then(|channel| {
        let (wanted, given, other, surplus) = match channel {
            Channel::Webhook => ("/url", url, "/to", to),
            Channel::Email => ("/to", to, "/url", url),
        };
        if surplus.is_some() {
            let detail = format!("is not a field of a receiver of kind {}", channel.as_str());
            violations.report(FieldError::new(other, FieldCode::Unknown, detail));
        }
        let missing = || FieldError::new(wanted, FieldCode::Required, format!("is required for {}", channel.as_str()));
        violations.check(wanted, || given.ok_or_else(missing))
    });
    let request = channel.zip(address).map(|(channel, address)| AddReceiverRequest { channel, address, events });
    violations.finish(request)
}
