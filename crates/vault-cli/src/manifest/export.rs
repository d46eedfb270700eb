//! Export of existing objects as a document. The output for the same organization is identical byte for byte.

use super::plan::{Present, address, label, place};
use super::{DATA_VERSION, NAME, OWN_LABELS};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Component, PathBuf};
use vault_client::{CredentialItem, IntegrationItem, ReceiverItem};
use vault_core::activation::VendRule;
use vault_core::credential::{CredentialType, FieldClass, Labels};
use vault_core::receiver::EventKinds;

/// Quotes a text for both JSON and YAML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The document of a set, and the objects that no document can describe, each with the reason: with one of them, the
/// document would be rejected as a whole.
pub(crate) fn export(present: &Present) -> (String, Vec<String>) {
    let mut text = "set: main\n".to_owned();
    let mut omitted = Vec::new();
    let mut people: Vec<_> = present.people.iter().collect();
    // Several invitations can be open for one address.
    people.sort_by(|one, other| (&one.email, one.state == "invited").cmp(&(&other.email, other.state == "invited")));
    people.dedup_by(|one, other| one.email.eq_ignore_ascii_case(&other.email));
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
    let named = |one: &&ReceiverItem| receivers.iter().filter(|other| address(other) == address(one)).count() == 1;
    let (alone, others): (Vec<_>, Vec<_>) = receivers.iter().copied().partition(named);
    omitted.extend(
        others.iter().map(|one| {
            format!("receiver {} ({}): documents distinguish webhooks by their hosts", address(one), one.id)
        }),
    );
    section(&mut text, "receivers", &alone, |text, one| receiver(text, one));
    let mut credentials: Vec<_> = present.credentials.iter().collect();
    credentials.sort_by(|one, other| (&one.namespace, label(one, NAME)).cmp(&(&other.namespace, label(other, NAME))));
    let reasons: Vec<_> = credentials.iter().map(|item| obstacle(item, &credentials)).collect();
    let mut described = Vec::new();
    for (item, reason) in credentials.into_iter().zip(reasons) {
        match reason {
            None => described.push(item),
            Some(reason) => omitted.push(format!("credential {} ({}): {reason}", place(item), item.id)),
        }
    }
    section(&mut text, "credentials", &described, |text, item| credential(text, item));
    (text, omitted)
}

/// Why no document can describe a credential.
fn obstacle(item: &CredentialItem, all: &[&CredentialItem]) -> Option<String> {
    let name = label(item, NAME).map_or("", String::as_str);
    let others = item.labels.iter().flat_map(|labels| labels.keys()).filter(|name| !OWN_LABELS.contains(&&***name));
    let directory = directory(item);
    let is_same = |other: &&&CredentialItem| {
        // Files of two credentials must not meet: the directory of one is not below that of the other.
        other.id != item.id
            && (directory.starts_with(self::directory(other)) || self::directory(other).starts_with(&directory))
    };
    if item.damaged {
        return Some("it cannot be decrypted".to_owned());
    }
    if name.is_empty() {
        return Some(format!("its label {NAME} is empty"));
    }
    if CredentialType::parse(&item.kind).is_none() {
        return Some(format!("this version does not support the type {}", item.kind));
    }
    let most = Labels::MAX - OWN_LABELS.len();
    if others.count() > most {
        return Some(format!("it has more than {most} labels in addition to {}", OWN_LABELS.join(", ")));
    }
    if directory.components().any(|part| part == Component::ParentDir) {
        return Some("its namespace or name contains .. and cannot be a path of files".to_owned());
    }
    all.iter().find(is_same).map(|other| format!("credential {} ({}) has the same files", place(other), other.id))
}

/// The directory of the files to which the document of a credential refers.
fn directory(item: &CredentialItem) -> PathBuf {
    PathBuf::from(format!("data/{}/{}", item.namespace, label(item, NAME).map_or("", String::as_str)))
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
    let default = CredentialType::parse(&item.kind).map(VendRule::default_of).unwrap_or_default();
    if item.vend != default.as_str() {
        line(text, "    vend", &quoted(&item.vend));
    }
    if let Some(at) = &item.expires_at {
        line(text, "    expires_at", &quoted(at));
    }
    let version: Option<i64> = label(item, DATA_VERSION).and_then(|text| text.parse().ok());
    line(text, "    data_version", &version.filter(|version| *version > 0).unwrap_or(1).to_string());
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
                let file = format!("{}/{}", directory(item).display(), field.name);
                line(text, &format!("      {}", field.name), &format!("{{file: {}}}", quoted(&file)));
            }
            FieldClass::Id | FieldClass::Secret => {}
        }
    }
}
