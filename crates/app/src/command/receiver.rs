//! `orgvault receiver …`: receivers of notifications about the instance, or about an organization.

use super::target::Target;
use crate::cli::{ReceiverAddress, ReceiverCommand as Asked};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use vault_cli::failure::{Doing, Failure, refused};
use vault_cli::output::{Output, table};
use vault_cli::secret_file;
use vault_client::{AddReceiverRequest, ChangeReceiverRequest, DeliveryItem, IssuedReceiver, ReceiverItem};
use vault_core::Error;
use vault_core::cursor::PageRequest;
use vault_core::id::ReceiverId;
use vault_core::principal::Principal;
use vault_core::receiver::{Channel, MAX_ADDRESS_LENGTH, ReceiverState};
use vault_core::usecase::receivers::{AddReceiverRequest as Added, ReceiverEdit};
use vault_http::items;

const OPERATOR: Principal = Principal::Operator;
const NO_RECEIVER: &str = "no receiver has this id; `orgvault receiver list` lists them";
/// Instructions for the owner of a new webhook.
const SECRET_NOTE: &str = "It is shown this once. Libraries of Standard Webhooks verify messages with it.";

/// A receiver in JSON output.
#[derive(Serialize)]
struct Shown {
    id: String,
    kind: String,
    address: String,
    events: Vec<String>,
    state: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_delivered_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl From<ReceiverItem> for Shown {
    fn from(receiver: ReceiverItem) -> Self {
        Self {
            id: receiver.id,
            kind: receiver.kind,
            address: receiver.url.or(receiver.to).unwrap_or_default(),
            events: receiver.events,
            state: receiver.state,
            created_at: receiver.created_at,
            last_delivered_at: receiver.last_delivered_at,
            last_error: receiver.last_error,
            secret: None,
        }
    }
}

impl From<IssuedReceiver> for Shown {
    fn from(issued: IssuedReceiver) -> Self {
        let secret = issued.secret.map(|secret| reveal(&secret.into_secret()));
        Self { secret, ..issued.receiver.into() }
    }
}

/// Reveals a signing secret, which is printed once.
fn reveal(secret: &SecretString) -> String {
    secret.expose_secret().to_owned()
}

pub(crate) async fn run(target: &Target<'_>, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Add { address, event } => {
            let (channel, address) = read(address)?;
            let shown = add(target, channel, address, event).await.doing(|| "add the receiver".to_owned())?;
            let mut text = format!("Added receiver {} ({}).\n", shown.id, shown.address);
            if let Some(secret) = &shown.secret {
                text.push_str(&format!("\n  signing secret  {secret}\n\n{SECRET_NOTE}\n"));
            }
            let test = target.command_line(&format!("receiver test {}", shown.id));
            text.push_str(&format!("\nNext: `{test}` sends a test."));
            output.print(&shown, &text)
        }
        Asked::List => {
            let listed = list(target).await?;
            let row = |row: &Shown| {
                let delivered = row.last_delivered_at.clone().unwrap_or_default();
                let error = row.last_error.clone().unwrap_or_default();
                vec![row.id.clone(), row.kind.clone(), row.address.clone(), row.state.clone(), delivered, error]
            };
            let rows: Vec<_> = listed.iter().map(row).collect();
            let heading = ["ID", "KIND", "ADDRESS", "STATE", "LAST DELIVERED", "LAST ERROR"];
            output.print(&listed, &table(&heading, &rows))
        }
        Asked::Change { id, state, event } => {
            if state.is_none() && event.is_empty() {
                return Err(Failure::usage("pass --state or --event"));
            }
            let shown = change(target, id, state, event).await.doing(|| format!("change receiver {id}"))?;
            let events = shown.events.join(", ");
            let text = format!("Changed receiver {id}.\n\n  state   {}\n  events  {events}\n", shown.state);
            output.print(&shown, &text)
        }
        Asked::Remove { id } => {
            remove(target, id).await.doing(|| format!("remove receiver {id}"))?;
            let document = serde_json::json!({"id": id.to_string()});
            output.print(&document, &format!("Removed receiver {id} and its pending events."))
        }
        Asked::RotateSecret { id } => {
            let replaced = rotate_secret(target, id).await;
            let shown = replaced.doing(|| format!("replace the signing secret of receiver {id}"))?;
            let text = format!(
                "Receiver {id} has another signing secret.\n\n  signing secret  {}\n\n{SECRET_NOTE} For 24 hours, messages \
                 are signed with the old one too.",
                shown.secret.as_deref().unwrap_or_default()
            );
            output.print(&shown, &text)
        }
        Asked::Test { id } => {
            let delivery = test(target, id).await.doing(|| format!("test receiver {id}"))?;
            let deliveries = target.command_line(&format!("receiver deliveries {id}"));
            let text = format!("Queued a test event for receiver {id}. To see the result, run `{deliveries}`.");
            output.print(&delivery, &text)
        }
        Asked::Deliveries { id, limit } => {
            let shown = deliveries(target, id, limit).await.doing(|| "list deliveries".to_owned())?;
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

async fn add(target: &Target<'_>, channel: Channel, address: String, events: Vec<String>) -> Result<Shown, Failure> {
    match target {
        Target::Database(_, vault) => {
            let added = vault.receivers().add(&OPERATOR, Added { channel, address, events }).await.map_err(absent)?;
            let secret = added.secret.as_ref().map(reveal);
            Ok(Shown { secret, ..items::receiver(&added.receiver).into() })
        }
        Target::Server(remote) => {
            let (url, to) = match channel {
                Channel::Webhook => (Some(address), None),
                Channel::Email => (None, Some(address)),
            };
            let events = Some(events).filter(|names| !names.is_empty());
            let request = AddReceiverRequest { kind: channel.as_str().to_owned(), url, to, events };
            remote.done(remote.session.add_receiver(&request), NO_RECEIVER).map(Shown::from)
        }
    }
}

async fn list(target: &Target<'_>) -> Result<Vec<Shown>, Failure> {
    let receivers = match target {
        Target::Database(_, vault) => {
            vault.receivers().list(&OPERATOR).await?.iter().map(items::receiver).collect::<Vec<_>>()
        }
        Target::Server(remote) => remote.done(remote.session.receivers(), NO_RECEIVER)?,
    };
    Ok(receivers.into_iter().map(Shown::from).collect())
}

async fn change(
    target: &Target<'_>,
    id: ReceiverId,
    state: Option<String>,
    events: Vec<String>,
) -> Result<Shown, Failure> {
    let events = Some(events).filter(|names| !names.is_empty());
    let changed = match target {
        Target::Database(_, vault) => {
            let edit = ReceiverEdit { state: state.as_deref().and_then(ReceiverState::parse), events };
            items::receiver(&vault.receivers().change(&OPERATOR, id, edit).await.map_err(absent)?)
        }
        Target::Server(remote) => {
            let request = ChangeReceiverRequest { state, events };
            remote.done(remote.session.change_receiver(&id.to_string(), &request), NO_RECEIVER)?
        }
    };
    Ok(changed.into())
}

async fn remove(target: &Target<'_>, id: ReceiverId) -> Result<(), Failure> {
    match target {
        Target::Database(_, vault) => vault.receivers().remove(&OPERATOR, id).await.map_err(absent),
        Target::Server(remote) => remote.done(remote.session.remove_receiver(&id.to_string()), NO_RECEIVER),
    }
}

async fn rotate_secret(target: &Target<'_>, id: ReceiverId) -> Result<Shown, Failure> {
    match target {
        Target::Database(_, vault) => {
            let (stored, secret) = vault.receivers().replace_secret(&OPERATOR, id).await.map_err(absent)?;
            Ok(Shown { secret: Some(reveal(&secret)), ..items::receiver(&stored).into() })
        }
        Target::Server(remote) => {
            remote.done(remote.session.rotate_receiver_secret(&id.to_string()), NO_RECEIVER).map(Shown::from)
        }
    }
}

async fn test(target: &Target<'_>, id: ReceiverId) -> Result<DeliveryItem, Failure> {
    match target {
        Target::Database(_, vault) => {
            Ok(items::delivery(&vault.receivers().test(&OPERATOR, id).await.map_err(absent)?))
        }
        Target::Server(remote) => remote.done(remote.session.test_receiver(&id.to_string()), NO_RECEIVER),
    }
}

async fn deliveries(target: &Target<'_>, id: ReceiverId, limit: usize) -> Result<Vec<DeliveryItem>, Failure> {
    match target {
        Target::Database(_, vault) => {
            let page = PageRequest { limit, ..PageRequest::default() };
            let listed = vault.receivers().deliveries(&OPERATOR, id, page).await.map_err(absent)?;
            Ok(listed.items.iter().map(items::delivery).collect())
        }
        Target::Server(remote) => remote.done(remote.session.deliveries(&id.to_string(), limit), NO_RECEIVER),
    }
}

fn absent(error: Error) -> Failure {
    refused(error, NO_RECEIVER)
}

fn read(address: ReceiverAddress) -> Result<(Channel, String), Failure> {
    match address {
        ReceiverAddress { url: Some(url), .. } => Ok((Channel::Webhook, url)),
        ReceiverAddress { email: Some(email), .. } => Ok((Channel::Email, email)),
        ReceiverAddress { url_file: Some(path), .. } => {
            let flag = "--url-file";
            let bytes = secret_file::read(flag, &path, MAX_ADDRESS_LENGTH + 2)?;
            let text = std::str::from_utf8(&bytes).map(|text| text.trim().to_owned());
            let text = text.map_err(|_| Failure::new(format!("{flag}: {} is not valid UTF-8 text", path.display())))?;
            Ok((Channel::Webhook, text))
        }
        _ => Err(Failure::usage("pass --url, --url-file or --email")),
    }
}
