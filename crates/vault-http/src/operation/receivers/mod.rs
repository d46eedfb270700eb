//! `{base_url}/receivers`: receivers of events of the organization.

pub(super) mod add;
pub(super) mod change;
pub(super) mod deliveries;
pub(super) mod list;

use super::NO_ID;
use crate::answer::time_text;
use crate::route::RequestPath;
use vault_api::ReceiverItem;
use vault_core::id::ReceiverId;
use vault_core::receiver::{Channel, DeliveryFailure, StoredReceiver};

/// Returns the receiver ID in the path. An invalid ID is handled like that of a receiver that does not exist.
fn named(place: RequestPath<'_>) -> ReceiverId {
    place.id().parse().unwrap_or(ReceiverId::from_bytes(NO_ID))
}

/// Converts a receiver for lists.
pub fn item(stored: &StoredReceiver) -> ReceiverItem {
    let receiver = &stored.receiver;
    let shown = |channel| Some(receiver.shown.clone()).filter(|_| receiver.channel == channel);
    ReceiverItem {
        id: receiver.id.to_string(),
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
