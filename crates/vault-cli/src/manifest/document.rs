//! Parsing of documents: lists of the requests of the HTTP API. All violations are reported together.

use super::validate::Check;
use super::{At, Violation, yaml};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::array::IntoIter;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Not;
use std::path::PathBuf;
use vault_client::{CreateIntegrationRequest, InviteRequest, SaveRequest};
use vault_core::credential::CredentialType;
use vault_core::field::{FieldCode, FieldError};
use vault_core::integration::ManagedBy;
use vault_core::json::typed_error;

/// The content of a set of documents.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Manifest {
    /// Name of the set, which all its documents must declare.
    pub(crate) set: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) people: Vec<Person>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) integrations: Vec<Integration>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) receivers: Vec<Receiver>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) credentials: Vec<Credential>,
}

/// An element of a list: a request, and the fields that only documents have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Item<R, O = State> {
    #[serde(skip)]
    pub(crate) at: At,
    #[serde(flatten)]
    pub(crate) own: O,
    #[serde(flatten)]
    pub(crate) request: R,
}

/// An account, or an invitation if there is no account.
pub(crate) type Person = Item<InviteRequest>;
/// An integration, identified by its name.
pub(crate) type Integration = Item<CreateIntegrationRequest>;
/// A receiver of events.
pub(crate) type Receiver = Item<Address>;
/// A credential, identified by namespace and name. Values of its data can be references.
pub(crate) type Credential = Item<SaveRequest<Map<String, Value>>, Named>;

/// The state of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    #[serde(default, skip_serializing_if = "Not::not")]
    pub(crate) disabled: bool,
}

/// The fields of an element that are no part of the request.
pub(crate) trait Own: DeserializeOwned {
    const NAMES: &[&str];
}

impl Own for State {
    const NAMES: &[&str] = &["disabled"];
}

impl Own for Named {
    const NAMES: &[&str] = &["name", "data_version"];
}

/// Name of a credential and version of its data, which become labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
    #[serde(default = "first")]
    pub(crate) data_version: i64,
}

const fn first() -> i64 {
    1
}

/// The displayed address of a receiver, which identifies it. For a webhook, that is only the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) webhook: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) email: Option<String>,
    /// Reference to the URL of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<Value>,
    /// Selected events. Empty selects all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<String>,
}

impl Address {
    pub(crate) fn text(&self) -> &str {
        self.webhook.as_deref().or(self.email.as_deref()).unwrap_or_default()
    }
}

impl Credential {
    /// Returns its type. Unknown ones are violations.
    pub(crate) fn kind(&self) -> Option<CredentialType> {
        CredentialType::parse(&self.request.kind)
    }
}

/// The source of a value.
#[derive(Debug, PartialEq)]
pub(crate) enum Datum<'a> {
    /// A literal value.
    Plain(&'a Value),
    /// A file below the directory of the document.
    File(&'a str),
    /// An environment variable.
    Variable(&'a str),
}

/// Returns the source of a value. Other objects than `file: PATH` and `env: NAME` have none.
pub(crate) fn datum(value: &Value) -> Option<Datum<'_>> {
    let Value::Object(members) = value else { return Some(Datum::Plain(value)) };
    match members.iter().next() {
        Some((place, Value::String(text))) if members.len() == 1 => match place.as_str() {
            "file" => Some(Datum::File(text)),
            "env" => Some(Datum::Variable(text)),
            _ => None,
        },
        _ => None,
    }
}

/// A document, whose elements are read one by one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    set: String,
    #[serde(default)]
    people: Vec<Value>,
    #[serde(default)]
    integrations: Vec<Value>,
    #[serde(default)]
    receivers: Vec<Value>,
    #[serde(default)]
    credentials: Vec<Value>,
}

/// Parses documents, given by path and text, and validates them by the rules of the server.
pub(crate) fn read(texts: &[(PathBuf, String)]) -> Result<Manifest, Vec<Violation>> {
    let (mut manifest, mut violations) = (Manifest::default(), Vec::new());
    for (file, text) in texts {
        match yaml::documents(text) {
            Ok(documents) => documents.into_iter().for_each(|(value, lines)| {
                Reader { at: At { file: file.clone(), lines }, violations: &mut violations }
                    .document(value, &mut manifest);
            }),
            Err((line, reason)) => {
                violations.push(Violation { file: file.clone(), line, field: String::new(), reason });
            }
        }
    }
    violations.extend(duplicates(&manifest));
    violations.sort();
    if violations.is_empty() { Ok(manifest) } else { Err(violations) }
}

/// Returns a violation for each object that is described twice.
fn duplicates(manifest: &Manifest) -> Vec<Violation> {
    let people = manifest.people.iter().map(|one| (&one.at, "people", one.request.email.clone()));
    let integrations = manifest.integrations.iter().map(|one| (&one.at, "integrations", one.request.name.clone()));
    let receivers = manifest.receivers.iter().map(|one| (&one.at, "receivers", one.request.text().to_owned()));
    let credentials = manifest
        .credentials
        .iter()
        .map(|one| (&one.at, "credentials", format!("{} {}", one.request.namespace, one.own.name)));
    let mut seen = BTreeSet::new();
    let all = people.chain(integrations).chain(receivers).chain(credentials);
    let again = all.filter(|(_, kind, name)| !seen.insert((*kind, name.clone())));
    again.map(|(at, kind, name)| at.violation(kind, format!("{name} is described twice"))).collect()
}

struct Reader<'a> {
    at: At,
    violations: &'a mut Vec<Violation>,
}

impl Reader<'_> {
    fn document(&mut self, value: Value, manifest: &mut Manifest) {
        let mut errors = Vec::new();
        let lists = members(value, &mut errors).and_then(|members| parse::<Lists>(members, &[], &mut errors));
        if let Some(lists) = lists {
            errors.extend(ManagedBy::parse(&lists.set, "set").err());
            if manifest.set.is_empty() {
                manifest.set.clone_from(&lists.set);
            } else if manifest.set != lists.set {
                let reason = format!("is {}, and another document's is {}", lists.set, manifest.set);
                self.violations.push(self.at.violation("set", reason));
            }
            manifest.people.extend(self.items("people", lists.people));
            manifest.integrations.extend(self.items("integrations", lists.integrations));
            manifest.receivers.extend(self.items("receivers", lists.receivers));
            manifest.credentials.extend(self.items("credentials", lists.credentials));
        }
        self.violations.extend(errors.into_iter().map(|error| self.at.violation(&error.pointer, error.detail)));
    }

    fn items<R: DeserializeOwned, O: Own>(&mut self, list: &str, values: Vec<Value>) -> Vec<Item<R, O>>
    where
        Item<R, O>: Check,
    {
        let mut items = Vec::new();
        for (number, value) in values.into_iter().enumerate() {
            let (at, mut errors) = (self.at.below(&format!("{list}/{number}")), Vec::new());
            let item = members(value, &mut errors).and_then(|mut request| {
                let own = O::NAMES.iter().filter_map(|name| request.remove_entry(*name)).collect();
                let (own, request) = (parse(own, &[], &mut errors), parse(request, O::NAMES, &mut errors));
                Some(Item { at: at.clone(), own: own?, request: request? })
            });
            if let Some(mut item) = item {
                let wrong: Vec<String> = errors.iter().map(|error| error.pointer.clone()).collect();
                // The placeholder of a wrong value is wrong too.
                let is_new =
                    |error: &FieldError| wrong.iter().all(|other| first_name(other) != first_name(&error.pointer));
                errors.extend(item.check().into_iter().filter(is_new));
                items.push(item);
            }
            self.violations.extend(errors.into_iter().map(|error| at.violation(&error.pointer, error.detail)));
        }
        items
    }
}

/// Returns the members of an object without those that have no value.
fn members(value: Value, errors: &mut Vec<FieldError>) -> Option<Map<String, Value>> {
    let Value::Object(members) = value else {
        errors.push(FieldError::new("", FieldCode::WrongType, "must be names with values"));
        return None;
    };
    Some(members.into_iter().filter(|(_, value)| !value.is_null()).collect())
}

/// Parses an object. Replaces invalid fields by placeholders, to find all errors. `more` are names of other fields of
/// the object.
fn parse<T: DeserializeOwned>(
    mut members: Map<String, Value>,
    more: &[&str],
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let mut placeholders: BTreeMap<String, IntoIter<Value, 5>> = BTreeMap::new();
    loop {
        let error = match serde_path_to_error::deserialize(Value::Object(members.clone())) {
            Ok(parsed) => return Some(parsed),
            Err(error) => typed_error(&error),
        };
        let name = first_name(&error.pointer).to_owned();
        let is_known = error.code != FieldCode::Unknown;
        let next = placeholders.entry(name.clone()).or_insert_with(|| {
            let detail = if is_known || more.is_empty() {
                error.detail
            } else {
                format!("{}, {}", error.detail, more.join(", ")).into()
            };
            errors.push(FieldError { detail, ..error });
            [json!(""), json!([]), json!({}), json!(false), json!(1)].into_iter()
        });
        match next.next() {
            Some(placeholder) if is_known => drop(members.insert(name, placeholder)),
            _ => drop(members.remove(&name)?),
        }
    }
}

/// Returns the name of the field that contains the value at `pointer`.
fn first_name(pointer: &str) -> &str {
    pointer.trim_start_matches('/').split('/').next().unwrap_or_default()
}
