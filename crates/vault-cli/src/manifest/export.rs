//! Export of existing objects as a document. The output for the same organization is identical byte for byte.

use super::document::{Address, Credential, Integration, Item, Manifest, Named, Receiver, State};
use super::plan::{Present, address, label, place};
use super::{At, DATA_VERSION, NAME, OWN_LABELS};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Component, PathBuf};
use vault_client::{
    AccountItem, CreateIntegrationRequest, CredentialItem, IntegrationItem, InviteRequest, ReceiverItem, SaveRequest,
    TrustRequest,
};
use vault_core::activation::VendRule;
use vault_core::credential::{CredentialType, FieldClass, Labels};
use vault_core::receiver::EventKinds;

/// Fields that precede the others of an object.
const FIRST: [&str; 10] =
    ["set", "people", "integrations", "receivers", "credentials", "webhook", "email", "namespace", "name", "type"];

/// The document of a set, and the objects that no document can describe, each with the reason: with one of them, the
/// document would be rejected as a whole.
pub(crate) fn export(present: &Present) -> (String, Vec<String>) {
    let mut people: Vec<_> = present.people.iter().collect();
    // Several invitations can be open for one address.
    people.sort_by(|one, other| (&one.email, one.state == "invited").cmp(&(&other.email, other.state == "invited")));
    people.dedup_by(|one, other| one.email.eq_ignore_ascii_case(&other.email));
    let mut integrations: Vec<_> = present.integrations.iter().collect();
    integrations.sort_by(|one, other| one.name.cmp(&other.name));
    let mut receivers: Vec<_> = present.receivers.iter().collect();
    receivers.sort_by_key(|one| address(one));
    let named = |one: &&ReceiverItem| receivers.iter().filter(|other| address(other) == address(one)).count() == 1;
    let (alone, others): (Vec<_>, Vec<_>) = receivers.iter().copied().partition(named);
    let mut omitted: Vec<String> = others
        .iter()
        .map(|one| format!("receiver {} ({}): documents distinguish webhooks by their hosts", address(one), one.id))
        .collect();
    let mut credentials: Vec<_> = present.credentials.iter().collect();
    credentials.sort_by(|one, other| (&one.namespace, label(one, NAME)).cmp(&(&other.namespace, label(other, NAME))));
    let mut described = Vec::new();
    for item in &credentials {
        match obstacle(item, &credentials) {
            None => described.push(credential(item)),
            Some(reason) => omitted.push(format!("credential {} ({}): {reason}", place(item), item.id)),
        }
    }
    let manifest = Manifest {
        set: "main".to_owned(),
        people: people.into_iter().map(person).collect(),
        integrations: integrations.into_iter().map(integration).collect(),
        receivers: alone.into_iter().map(receiver).collect(),
        credentials: described,
    };
    (text_of(&manifest), omitted)
}

/// Returns the text of a document.
pub(crate) fn text_of(manifest: &Manifest) -> String {
    let mut text = String::new();
    write(&mut text, "", &json!(manifest));
    text
}

/// Writes an object or list: as a block if values in it contain others, otherwise as JSON, which is YAML too.
fn write(text: &mut String, indent: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
            for (name, value) in members {
                if is_flat(value) {
                    text.push_str(&format!("{indent}{name}: {value}\n"));
                } else {
                    let gap = if indent.is_empty() { "\n" } else { "" };
                    text.push_str(&format!("{gap}{indent}{name}:\n"));
                    write(text, &format!("{indent}  "), value);
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                let mut block = String::new();
                write(&mut block, &format!("{indent}  "), element);
                text.push_str(&format!("{indent}- {}", block.trim_start()));
            }
        }
        scalar => text.push_str(&format!("{indent}{scalar}\n")),
    }
}

/// Returns whether a value contains no object or list in an object or list, and no object in a list.
fn is_flat(value: &Value) -> bool {
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    match value {
        Value::Object(members) => members.values().all(is_scalar),
        Value::Array(elements) => elements.iter().all(is_scalar),
        _ => true,
    }
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

fn item<R, O>(own: O, request: R) -> Item<R, O> {
    Item { at: At::default(), own, request }
}

fn state(state: &str) -> State {
    State { disabled: state == "disabled" }
}

fn person(one: &AccountItem) -> Item<InviteRequest> {
    item(state(&one.state), InviteRequest { email: one.email.clone(), role: one.role.clone() })
}

fn receiver(one: &ReceiverItem) -> Receiver {
    let mut events = one.events.clone();
    events.sort();
    if events.len() == EventKinds::all(true).iter().count() {
        events.clear();
    }
    let host = |url: &String| url.trim_end_matches(['…', '/']).rsplit('/').next().unwrap_or_default().to_owned();
    let url = one.url.as_ref().map(|url| json!({"file": format!("receivers/{}", host(url))}));
    let email = one.url.is_none().then(|| address(one).to_owned());
    item(state(&one.state), Address { webhook: one.url.clone(), email, url, events })
}

fn integration(one: &IntegrationItem) -> Integration {
    let mut namespaces = one.namespaces.clone();
    namespaces.sort();
    let trust = |trust: &vault_client::TrustItem| TrustRequest {
        issuer: json!(trust.issuer),
        claims: json!(trust.claims),
        max_lifetime: Some(json!(trust.max_lifetime)),
    };
    let mut trusts: Vec<TrustRequest> = one.trusts.iter().map(trust).collect();
    trusts.sort_by_cached_key(|trust| json!(trust).to_string());
    let request = CreateIntegrationRequest {
        name: one.name.clone(),
        namespaces,
        expires_at: one.expires_at.clone(),
        token: None,
        trusts: (!trusts.is_empty()).then_some(trusts),
        managed_by: None,
    };
    item(state(&one.state), request)
}

fn credential(one: &CredentialItem) -> Credential {
    let labels = one.labels.iter().flatten().filter(|(label, _)| !OWN_LABELS.contains(&&***label));
    let labels: BTreeMap<_, _> = labels.map(|(name, value)| (name.clone(), value.clone())).collect();
    let version = label(one, DATA_VERSION).and_then(|text| text.parse().ok()).filter(|version| *version > 0);
    let information = one.information.clone().unwrap_or_default();
    let secrets: Vec<&str> =
        information.get("secrets").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let kind = CredentialType::parse(&one.kind);
    let value = |name: &str, class: FieldClass| match class {
        FieldClass::Location => information.get(name).cloned(),
        // The vault never returns these values, so the document refers to files.
        FieldClass::Id | FieldClass::Secret if information.contains_key(name) || secrets.contains(&name) => {
            Some(json!({"file": format!("{}/{name}", directory(one).display())}))
        }
        FieldClass::Id | FieldClass::Secret => None,
    };
    let fields = kind.map(CredentialType::fields).unwrap_or_default().iter();
    let data = fields.filter_map(|field| Some((field.name.to_owned(), value(field.name, field.class)?))).collect();
    let default = kind.map(VendRule::default_of).unwrap_or_default();
    let request = SaveRequest {
        labels: (!labels.is_empty()).then_some(labels),
        description: one.description.clone(),
        expires_at: one.expires_at.clone(),
        vend: Some(one.vend.clone()).filter(|vend| vend != default.as_str()),
        ..SaveRequest::new(one.kind.clone(), one.namespace.clone(), data)
    };
    item(Named { name: label(one, NAME).cloned().unwrap_or_default(), data_version: version.unwrap_or(1) }, request)
}
