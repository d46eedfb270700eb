//! Mails with events, their relevance and the next step.

use super::{EventDelivery, EventKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum number of events of one kind that are listed in a mail. The others are only counted.
const NAMED: usize = 20;

/// A mail to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Subject, in one line.
    pub subject: String,
    /// Text, in lines.
    pub text: String,
}

/// Composes the mail about these events. `console` is the address of the console, if known.
pub fn compose_mail(deliveries: &[EventDelivery], console: Option<&str>) -> Mail {
    let mut by_kind: BTreeMap<EventKind, Vec<&EventDelivery>> = BTreeMap::new();
    for delivery in deliveries {
        by_kind.entry(delivery.kind).or_default().push(delivery);
    }
    let subject = match deliveries {
        [only] => format!("[OrgVault] {}", only.kind.title()),
        several => format!("[OrgVault] {} events", several.len()),
    };
    let mut text = String::new();
    for (kind, of_kind) in by_kind {
        let count = if of_kind.len() > 1 { format!(" ({} times)", of_kind.len()) } else { String::new() };
        text.push_str(&format!("{}{count}\n", kind.title()));
        for delivery in of_kind.iter().take(NAMED) {
            text.push_str(&format!("  {}\n", line(delivery)));
        }
        if of_kind.len() > NAMED {
            text.push_str(&format!("  and {} more\n", of_kind.len() - NAMED));
        }
        text.push_str(&format!("{}\n\n", kind.advice()));
    }
    if let Some(console) = console {
        text.push_str(&format!("{console}\n\n"));
    }
    text.push_str("You get this mail because an admin added your address as a receiver. Admins can remove it.\n");
    Mail { subject, text }
}

/// Returns the line for one event: its time, and its fields by name.
fn line(delivery: &EventDelivery) -> String {
    let body: Value = serde_json::from_str(&delivery.body).unwrap_or_default();
    let mut parts = vec![delivery.at.to_rfc3339().unwrap_or_default()];
    const MEMBERS: [(&str, &str); 6] = [
        ("namespace", "namespace"),
        ("name", "name"),
        ("credential_type", "type"),
        ("id", "id"),
        ("expires_at", "expires"),
        ("days", "days left"),
    ];
    for (member, word) in MEMBERS {
        match &body["data"][member] {
            Value::String(text) => parts.push(format!("{word} {}", printable(text))),
            Value::Number(number) => parts.push(format!("{word} {number}")),
            _ => {}
        }
    }
    parts.join(", ")
}

/// Replaces control characters, so that the text stays in one line and cannot affect the structure of the mail.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
