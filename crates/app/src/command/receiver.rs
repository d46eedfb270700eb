//! `orgvault receiver …`: receivers of notifications about the instance.

use crate::cli::{ReceiverAddress, ReceiverCommand as Asked};
use crate::failure::{Doing, Failure, refused};
use crate::output::{Output, table};
use crate::secret_file;
use crate::settings::Settings;
use crate::text::rfc3339;
use serde::Serialize;
use vault_core::cursor::PageRequest;
use vault_core::id::ReceiverId;
use vault_core::principal::Principal;
use vault_core::receiver::{
    Channel, DeliveryFailure, DeliveryState, EventDelivery, EventKinds, MAX_ADDRESS_LENGTH, ReceiverState,
    StoredReceiver,
};
use vault_core::usecase::receivers::{AddReceiverRequest, ReceiverEdit};
use vault_embed::OpenVault;

const OPERATOR: Principal = Principal::Operator;
const NO_RECEIVER: &str = "the instance has no receiver with this id; `orgvault receiver list` lists them";
const NO_EVENT: &str = "no such event was delivered to this receiver; `orgvault receiver deliveries` lists them";
/// Instructions for the owner of a new webhook.
const SECRET_NOTE: &str = "It is shown this once. Libraries of Standard Webhooks verify messages with it.";

/// A receiver in JSON output.
#[derive(Serialize)]
struct Shown {
    id: String,
    kind: &'static str,
    address: String,
    events: Vec<&'static str>,
    state: &'static str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_delivered_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// A delivery in JSON output.
#[derive(Serialize)]
struct ShownDelivery {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: String,
    state: &'static str,
    attempts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'static str>,
}

pub(crate) async fn run(settings: &Settings, vault: &OpenVault, command: Asked, output: Output) -> Result<(), Failure> {
    let receivers = vault.receivers();
    match command {
        Asked::Add { address, event } => {
            let (channel, address) = read(settings, address)?;
            let request = AddReceiverRequest { channel, address, events: event };
            let added = receivers
                .add(&OPERATOR, request)
                .await
                .map_err(|error| refused(error, NO_RECEIVER))
                .doing(|| "add the receiver".into());
            let added = added?;
            let mut shown = shown(&added.receiver);
            let mut text = format!("Added receiver {} ({}).\n", shown.id, shown.address);
            if let Some(secret) = &added.secret {
                let secret = secrecy::ExposeSecret::expose_secret(secret); // printed only once
                text.push_str(&format!("\n  signing secret  {secret}\n\n{SECRET_NOTE}\n"));
                shown.secret = Some(secret.to_owned());
            }
            text.push_str(&format!("\nNext: `orgvault receiver test {}` sends a test.", shown.id));
            output.print(&shown, &text)
        }
        Asked::List => {
            let listed: Vec<Shown> = receivers.list(&OPERATOR).await?.iter().map(shown).collect();
            let row = |row: &Shown| {
                let delivered = row.last_delivered_at.clone().unwrap_or_default();
                let error = row.last_error.unwrap_or_default().to_owned();
                vec![row.id.clone(), row.kind.to_owned(), row.address.clone(), row.state.to_owned(), delivered, error]
            };
            let rows: Vec<_> = listed.iter().map(row).collect();
            let heading = ["ID", "KIND", "ADDRESS", "STATE", "LAST DELIVERED", "LAST ERROR"];
            output.print(&listed, &table(&heading, &rows))
        }
        Asked::Events => {
            let events: Vec<_> = EventKinds::all(false).iter().collect();
            let rows: Vec<_> =
                events.iter().map(|kind| vec![kind.as_str().to_owned(), kind.title().to_owned()]).collect();
            let names: Vec<_> = events.iter().map(|kind| kind.as_str()).collect();
            output.print(&names, &table(&["EVENT", "EVENTS"], &rows))
        }
        Asked::Change { id, state, event } => {
            let state = state.as_deref().and_then(ReceiverState::parse);
            let edit = ReceiverEdit { state, events: Some(event).filter(|names| !names.is_empty()) };
            if edit == ReceiverEdit::default() {
                return Err(Failure::usage("pass --state or --event"));
            }
            let changed = receivers.change(&OPERATOR, id, edit).await.map_err(|error| refused(error, NO_RECEIVER));
            let shown = shown(&changed.doing(|| format!("change receiver {id}"))?);
            let events = shown.events.join(", ");
            let text = format!("Changed receiver {id}.\n\n  state   {}\n  events  {events}\n", shown.state);
            output.print(&shown, &text)
        }
        Asked::Remove { id } => {
            let removed = receivers.remove(&OPERATOR, id).await.map_err(|error| refused(error, NO_RECEIVER));
            removed.doing(|| format!("remove receiver {id}"))?;
            let document = serde_json::json!({"id": id.to_string()});
            output.print(&document, &format!("Removed receiver {id} and its pending events."))
        }
        Asked::RotateSecret { id } => {
            let replaced = receivers.replace_secret(&OPERATOR, id).await.map_err(|error| refused(error, NO_RECEIVER));
            let (stored, secret) = replaced.doing(|| format!("replace the signing secret of receiver {id}"))?;
            let secret = secrecy::ExposeSecret::expose_secret(&secret).to_owned(); // printed only once
            let until = rfc3339(stored.target.previous_until);
            let text = format!(
                "Receiver {id} has another signing secret.\n\n  signing secret  {secret}\n\n{SECRET_NOTE} Until {until}, \
                 messages are signed with the old one too."
            );
            let mut shown = shown(&stored);
            shown.secret = Some(secret);
            output.print(&shown, &text)
        }
        Asked::Test { id } => {
            let tested = receivers.test(&OPERATOR, id).await.map_err(|error| refused(error, NO_RECEIVER));
            let delivery = tested.doing(|| format!("test receiver {id}"))?;
            let text = format!(
                "Queued a test event for receiver {id}. To see the result, run `orgvault receiver deliveries {id}`."
            );
            output.print(&shown_delivery(&delivery), &text)
        }
        Asked::Deliveries { id, limit } => deliveries(vault, id, limit, output).await,
        Asked::Resend { id, event } => {
            let resent = receivers.resend(&OPERATOR, id, event).await.map_err(|error| refused(error, NO_EVENT));
            let delivery = resent.doing(|| format!("send event {event} again"))?;
            output.print(&shown_delivery(&delivery), &format!("Queued event {event} for receiver {id} again."))
        }
    }
}

async fn deliveries(vault: &OpenVault, id: ReceiverId, limit: usize, output: Output) -> Result<(), Failure> {
    let page = PageRequest { limit, ..PageRequest::default() };
    let listed = vault.receivers().deliveries(&OPERATOR, id, page).await;
    let listed = listed.map_err(|error| refused(error, NO_RECEIVER)).doing(|| "list deliveries".to_owned())?;
    let shown: Vec<ShownDelivery> = listed.items.iter().map(shown_delivery).collect();
    let row = |row: &ShownDelivery| {
        let error = row.last_error.unwrap_or_default().to_owned();
        let (id, kind, state) = (row.id.clone(), row.kind.to_owned(), row.state.to_owned());
        vec![id, kind, row.timestamp.clone(), state, row.attempts.to_string(), error]
    };
    let rows: Vec<_> = shown.iter().map(row).collect();
    let heading = ["EVENT ID", "EVENT", "AT", "STATE", "ATTEMPTS", "LAST ERROR"];
    output.print(&shown, &table(&heading, &rows))
}

fn read(settings: &Settings, address: ReceiverAddress) -> Result<(Channel, String), Failure> {
    match address {
        ReceiverAddress { url: Some(url), .. } => Ok((Channel::Webhook, url)),
        ReceiverAddress { email: Some(email), .. } => Ok((Channel::Email, email)),
        ReceiverAddress { url_file: Some(path), .. } => {
            let flag = "--url-file";
            let bytes = secret_file::read(&settings.files, flag, &path, MAX_ADDRESS_LENGTH + 2)?;
            let text = std::str::from_utf8(&bytes).map(|text| text.trim().to_owned());
            let text = text.map_err(|_| Failure::new(format!("{flag}: {} contains no text", path.display())))?;
            Ok((Channel::Webhook, text))
        }
        _ => Err(Failure::usage("pass --url, --url-file or --email")),
    }
}

fn shown(stored: &StoredReceiver) -> Shown {
    let receiver = &stored.receiver;
    Shown {
        id: receiver.id.to_string(),
        kind: receiver.channel.as_str(),
        address: receiver.shown.clone(),
        events: receiver.events.iter().map(|kind| kind.as_str()).collect(),
        state: stored.shown_state(),
        created_at: rfc3339(receiver.created_at),
        last_delivered_at: stored.status.last_delivered_at.map(rfc3339),
        last_error: stored.status.last_failure.map(DeliveryFailure::as_str),
        secret: None,
    }
}

fn shown_delivery(delivery: &EventDelivery) -> ShownDelivery {
    let waits = delivery.state == DeliveryState::Waiting;
    ShownDelivery {
        id: delivery.id.to_string(),
        kind: delivery.kind.as_str(),
        timestamp: rfc3339(delivery.at),
        state: delivery.state.as_str(),
        attempts: delivery.attempts,
        last_attempt_at: delivery.attempted_at.map(rfc3339),
        next_attempt_at: waits.then(|| rfc3339(delivery.next_at)),
        last_error: delivery.failure.map(DeliveryFailure::as_str),
    }
}
