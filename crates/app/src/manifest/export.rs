//! Export of existing objects as a document. The output for the same organization is identical byte for byte.

use super::plan::{Present, address, label};
use super::{DATA_VERSION, NAME, OWN_LABELS};
use serde_json::Value;
use std::fmt::Write as _;
use vault_client::{CredentialItem, IntegrationItem, ReceiverItem};
use vault_core::credential::{CredentialType, FieldClass};
use vault_core::receiver::EventKinds;

/// Quotes a text for both JSON and YAML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Formats the document of a set.
pub(crate) fn export(set: &str, present: &Present) -> String {
    let mut text = format!("set: {}\n", quoted(set));
    let mut people: Vec<_> = present.people.iter().collect();
    people.sort_by(|one, other| one.email.cmp(&other.email));
    section(&mut text, "people", &people, |text, person| {
        line(text, "  - email", &quoted(&person.email));
        line(text, "    role", &quoted(&person.role));
        if person.state == "disabled" {
            line(text, "    disabled", "true");
        }
    });
    let mut integrations: Vec<_> = present.integrations.iter().collect();
    integrations.sort_by(|one, other| one.name.cmp(&other.name));
    section(&mut text, "integrations", &integrations, |text, one| integration(text, one));
    let mut receivers: Vec<_> = present.receivers.iter().collect();
    receivers.sort_by_key(|one| address(one));
    let named = |one: &&&ReceiverItem| receivers.iter().filter(|other| address(other) == address(one)).count() == 1;
    let alone: Vec<_> = receivers.iter().filter(named).copied().collect();
    section(&mut text, "receivers", &alone, |text, one| receiver(text, one));
    let mut credentials: Vec<_> = present.credentials.iter().filter(|item| !item.damaged).collect();
    credentials.sort_by(|one, other| (&one.namespace, label(one, NAME)).cmp(&(&other.namespace, label(other, NAME))));
    section(&mut text, "credentials", &credentials, |text, item| credential(text, item));
    text
}

fn section<T>(text: &mut String, name: &str, all: &[T], mut write: impl FnMut(&mut String, &T)) {
    if !all.is_empty() {
        let _ = write!(text, "\n{name}:\n"); // writing to a String cannot fail
        all.iter().for_each(|one| write(text, one));
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name}: {value}"); // writing to a String cannot fail
}

fn receiver(text: &mut String, one: &ReceiverItem) {
    match &one.url {
        Some(url) => {
            line(text, "  - webhook", &quoted(url));
            let host = url.trim_end_matches(['…', '/']).rsplit('/').next().unwrap_or_default();
            line(text, "    url", &format!("{{file: {}}}", quoted(&format!("receivers/{host}"))));
        }
        None => line(text, "  - email", &quoted(address(one))),
    }
    let all = EventKinds::all(true);
    if one.events.len() < all.iter().count() {
        let mut events = one.events.clone();
        events.sort();
        line(text, "    events", &Value::from(events).to_string());
    }
    if one.state == "disabled" {
        line(text, "    disabled", "true");
    }
}

fn integration(text: &mut String, one: &IntegrationItem) {
    line(text, "  - name", &quoted(&one.name));
    let mut namespaces = one.namespaces.clone();
    namespaces.sort();
    line(text, "    namespaces", &Value::from(namespaces).to_string());
    if let Some(at) = &one.expires_at {
        line(text, "    expires_at", &quoted(at));
    }
    if one.state == "disabled" {
        line(text, "    disabled", "true");
    }
    let mut trusts: Vec<_> = one.trusts.iter().collect();
    trusts.sort_by_key(|trust| {
        (trust.issuer.clone(), Value::from_iter(trust.claims.clone()).to_string(), trust.max_lifetime)
    });
    if !trusts.is_empty() {
        text.push_str("    trusts:\n");
    }
    for trust in trusts {
        line(text, "      - issuer", &quoted(&trust.issuer));
        line(text, "        claims", &Value::from_iter(trust.claims.clone()).to_string());
        line(text, "        max_lifetime", &trust.max_lifetime.to_string());
    }
}

fn credential(text: &mut String, item: &CredentialItem) {
    let name = label(item, NAME).cloned().unwrap_or_default();
    line(text, "  - namespace", &quoted(&item.namespace));
    line(text, "    name", &quoted(&name));
    line(text, "    type", &quoted(&item.kind));
    let labels = item.labels.iter().flatten().filter(|(label, _)| !OWN_LABELS.contains(&&***label));
    let labels: serde_json::Map<String, Value> =
        labels.map(|(name, value)| (name.clone(), Value::from(&**value))).collect();
    if !labels.is_empty() {
        line(text, "    labels", &Value::Object(labels).to_string());
    }
    if let Some(description) = &item.description {
        line(text, "    description", &quoted(description));
    }
    if item.vend != "any" {
        line(text, "    vend", &quoted(&item.vend));
    }
    if let Some(at) = &item.expires_at {
        line(text, "    expires_at", &quoted(at));
    }
    line(text, "    data_version", label(item, DATA_VERSION).map_or("1", |version| version));
    text.push_str("    data:\n");
    let information = item.information.clone().unwrap_or_default();
    let secrets: Vec<&str> =
        information.get("secrets").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    for field in CredentialType::parse(&item.kind).map(CredentialType::fields).unwrap_or_default() {
        let value = information.get(field.name);
        match field.class {
            FieldClass::Location => {
                if let Some(value) = value {
                    line(text, &format!("      {}", field.name), &value.to_string());
                }
            }
            // The vault never returns these values, so the document refers to files.
            FieldClass::Id | FieldClass::Secret if value.is_some() || secrets.contains(&field.name) => {
                let file = format!("data/{}/{name}/{}", item.namespace, field.name);
                line(text, &format!("      {}", field.name), &format!("{{file: {}}}", quoted(&file)));
            }
            FieldClass::Id | FieldClass::Secret => {}
        }
    }
}
