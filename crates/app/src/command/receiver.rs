//! `orgvault receiver …`: receivers of notifications about the instance, or about an organization.

use super::target::Target;
use crate::cli::{ReceiverAddress, ReceiverCommand as Asked};
use secrecy::ExposeSecret as _;
use vault_cli::failure::{Doing, Failure};
use vault_cli::output::{Output, table};
use vault_cli::secret_file;
use vault_client::{AddReceiverRequest, ChangeReceiverRequest, DeliveryItem, IssuedReceiver, ReceiverItem};
use vault_core::receiver::MAX_ADDRESS_LENGTH;

const NO_RECEIVER: &str = "no receiver has this id; `orgvault receiver list` lists them";
/// Instructions for the owner of a new webhook.
const SECRET_NOTE: &str = "It is shown this once. Libraries of Standard Webhooks verify messages with it.";

pub(crate) fn run(target: &Target<'_>, command: Asked, output: Output) -> Result<(), Failure> {
    let session = target.session(None);
    match command {
        Asked::Add { address, event } => {
            let request = AddReceiverRequest { events: named(event), ..read(address)? };
            let added = target.done(session.add_receiver(&request), NO_RECEIVER);
            let shown = added.doing(|| "add the receiver".to_owned())?;
            let receiver = &shown.receiver;
            let mut text = format!("Added receiver {} ({}).\n", receiver.id, address_of(receiver));
            if shown.secret.is_some() {
                text.push_str(&format!("\n  signing secret  {}\n\n{SECRET_NOTE}\n", reveal(&shown)));
            }
            let test = target.command_line(&format!("receiver test {}", receiver.id));
            text.push_str(&format!("\nNext: `{test}` sends a test."));
            output.print(&shown, &text)
        }
        Asked::List => {
            let listed = target.done(session.receivers(), NO_RECEIVER)?;
            let row = |row: &ReceiverItem| {
                let delivered = row.last_delivered_at.clone().unwrap_or_default();
                let error = row.last_error.clone().unwrap_or_default();
                vec![row.id.clone(), row.kind.clone(), address_of(row).to_owned(), row.state.clone(), delivered, error]
            };
            let rows: Vec<_> = listed.iter().map(row).collect();
            let heading = ["ID", "KIND", "ADDRESS", "STATE", "LAST DELIVERED", "LAST ERROR"];
            output.print(&listed, &table(&heading, &rows))
        }
        Asked::Change { id, state, event } => {
            if state.is_none() && event.is_empty() {
                return Err(Failure::usage("pass --state or --event"));
            }
            let request = ChangeReceiverRequest { state, events: named(event) };
            let changed = target.done(session.change_receiver(&id.to_string(), &request), NO_RECEIVER);
            let shown = changed.doing(|| format!("change receiver {id}"))?;
            let events = shown.events.join(", ");
            let text = format!("Changed receiver {id}.\n\n  state   {}\n  events  {events}\n", shown.state);
            output.print(&shown, &text)
        }
        Asked::Remove { id } => {
            let removed = target.done(session.remove_receiver(&id.to_string()), NO_RECEIVER);
            removed.doing(|| format!("remove receiver {id}"))?;
            let document = serde_json::json!({"id": id.to_string()});
            output.print(&document, &format!("Removed receiver {id} and its pending events."))
        }
        Asked::RotateSecret { id } => {
            let replaced = target.done(session.rotate_receiver_secret(&id.to_string()), NO_RECEIVER);
            let shown = replaced.doing(|| format!("replace the signing secret of receiver {id}"))?;
            let text = format!(
                "Receiver {id} has another signing secret.\n\n  signing secret  {}\n\n{SECRET_NOTE} For 24 hours, messages \
                 are signed with the old one too.",
                reveal(&shown)
            );
            output.print(&shown, &text)
        }
        Asked::Test { id } => {
            let queued = target.done(session.test_receiver(&id.to_string()), NO_RECEIVER);
            let delivery = queued.doing(|| format!("test receiver {id}"))?;
            let deliveries = target.command_line(&format!("receiver deliveries {id}"));
            let text = format!("Queued a test event for receiver {id}. To see the result, run `{deliveries}`.");
            output.print(&delivery, &text)
        }
        Asked::Deliveries { id, limit } => {
            let listed = target.done(session.deliveries(&id.to_string(), limit), NO_RECEIVER);
            let shown = listed.doing(|| "list deliveries".to_owned())?;
            let row = |row: &DeliveryItem| {
                let error = row.last_error.clone().unwrap_or_default();
                let (id, kind, state) = (row.id.clone(), row.kind.clone(), row.state.clone());
                vec![id, kind, row.timestamp.clone(), state, row.attempts.to_string(), error]
            };
            let rows: Vec<_> = shown.iter().map(row).collect();
            let heading = ["EVENT ID", "EVENT", "AT", "STATE", "ATTEMPTS", "LAST ERROR"];
            output.print(&shown, &table(&heading, &rows))
        }
    }
}

/// Returns the events that a command names, if any.
fn named(events: Vec<String>) -> Option<Vec<String>> {
    Some(events).filter(|names| !names.is_empty())
}

fn address_of(receiver: &ReceiverItem) -> &str {
    receiver.url.as_deref().or(receiver.to.as_deref()).unwrap_or_default()
}

/// Reveals a signing secret, which is printed once.
fn reveal(issued: &IssuedReceiver) -> &str {
    issued.secret.as_ref().map_or("", |secret| secret.secret().expose_secret())
}

fn read(address: ReceiverAddress) -> Result<AddReceiverRequest, Failure> {
    let webhook = |url| AddReceiverRequest { kind: "webhook".to_owned(), url: Some(url), to: None, events: None };
    match address {
        ReceiverAddress { url: Some(url), .. } => Ok(webhook(url)),
        ReceiverAddress { email: Some(email), .. } => {
            Ok(AddReceiverRequest { kind: "email".to_owned(), url: None, to: Some(email), events: None })
        }
        ReceiverAddress { url_file: Some(path), .. } => {
            let flag = "--url-file";
            let bytes = secret_file::read(flag, &path, MAX_ADDRESS_LENGTH + 2)?;
            let text = std::str::from_utf8(&bytes).map(|text| text.trim().to_owned());
            let text = text.map_err(|_| Failure::new(format!("{flag}: {} is not valid UTF-8 text", path.display())))?;
            Ok(webhook(text))
        }
        _ => Err(Failure::usage("pass --url, --url-file or --email")),
    }
}
