//! The text of mails: events, their relevance and the next step.

use serde_json::Value;
use std::collections::BTreeMap;
use vault_core::receiver::{EventDelivery, EventKind};

/// Maximum number of events of one kind that are listed in a mail. The others are only counted.
const NAMED: usize = 20;

/// Returns subject and text of the mail about these events. `console` is the address of the console, if known.
pub(crate) fn compose(deliveries: &[EventDelivery], console: Option<&str>) -> (String, String) {
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
    (subject, text)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vault_core::id::{EventId, ReceiverId};
    use vault_core::receiver::{Occurrence, ReceiverKey};
    use vault_core::time::Timestamp;
    use vault_testkit::crypto::FakeDigester;

    const NOW: Timestamp = Timestamp::from_millis(1_900_000_000_000);

    proptest! {
        /// A mail contains the advice for each kind of event, lists at most twenty events of a kind, and no value adds a
        /// line.
        #[test]
        fn mail_lists_events_and_advice(count in 1_usize..60, name in "[ -~\\r\\n]{0,30}") {
            let receiver = ReceiverKey { owner: None, id: ReceiverId::from_bytes([1; 16]) };
            let deliveries: Vec<_> = (0..count)
                .map(|index| {
                    let id = EventId::from_bytes([u8::try_from(index).unwrap(); 16]);
                    let mut occurrence = Occurrence::test(id, receiver, NOW);
                    occurrence.kind = EventKind::NamespaceFrozen;
                    occurrence.data.insert("namespace".to_owned(), name.clone().into());
                    occurrence.to_delivery(receiver, 1, NOW, &FakeDigester::default())
                })
                .collect();
            let (subject, text) = compose(&deliveries, Some("https://vault.example/"));
            prop_assert!(!subject.contains(['\r', '\n']));
            prop_assert!(text.contains(EventKind::NamespaceFrozen.advice()));
            prop_assert!(text.contains("https://vault.example/"));
            prop_assert!(text.lines().count() <= 30 && !text.contains('\r'));
        }
    }
}
