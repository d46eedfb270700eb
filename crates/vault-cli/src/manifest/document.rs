//! Parsing and validation of documents. All violations are reported together.

use super::yaml::{self, Node, Value};
use super::{At, OWN_LABELS, Violation};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vault_core::activation::VendRule;
use vault_core::credential::{CredentialType, FieldClass};
use vault_core::identity::DEFAULT_LIFETIME_SECONDS;
use vault_core::integration::ManagedBy;

/// The content of a set of documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    /// Name of the set, which all its documents must declare.
    pub(crate) set: String,
    pub(crate) people: Vec<Person>,
    pub(crate) integrations: Vec<Integration>,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) credentials: Vec<Credential>,
}

/// An account, or an invitation if there is no account.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Person {
    pub(crate) at: At,
    pub(crate) email: String,
    pub(crate) role: String,
    pub(crate) disabled: bool,
}

/// An integration, identified by its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Integration {
    pub(crate) at: At,
    pub(crate) name: String,
    pub(crate) namespaces: Vec<String>,
    pub(crate) expires_at: Option<String>,
    pub(crate) disabled: bool,
    /// Set if the integration gets a token when it is created.
    pub(crate) token: bool,
    pub(crate) trusts: Vec<Trust>,
}

/// A receiver of events, identified by its displayed address. For a webhook, that is only the host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Receiver {
    pub(crate) at: At,
    pub(crate) address: String,
    /// Line and source of a webhook's URL. `None` for e-mail.
    pub(crate) url: Option<(usize, Datum)>,
    /// Selected events. Empty selects all.
    pub(crate) events: Vec<String>,
    pub(crate) disabled: bool,
}

/// A trusted workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trust {
    pub(crate) at: At,
    pub(crate) issuer: String,
    pub(crate) claims: BTreeMap<String, Json>,
    /// Maximum token lifetime in seconds.
    pub(crate) max_lifetime: i64,
}

/// A credential, identified by namespace and name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Credential {
    pub(crate) at: At,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) kind: CredentialType,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) description: Option<String>,
    pub(crate) vend: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) data_version: i64,
    pub(crate) data: BTreeMap<String, (usize, Datum)>,
}

/// The value of a credential's field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    /// A literal value.
    Plain(Json),
    /// A file below the directory of the document.
    File(String),
    /// An environment variable.
    Variable(String),
}

/// Parses documents, given by path and text.
pub(crate) fn read(texts: &[(PathBuf, String)]) -> Result<Manifest, Vec<Violation>> {
    let (mut manifest, mut violations) = (Manifest::default(), Vec::new());
    for (file, text) in texts {
        match yaml::documents(text) {
            Ok(documents) => documents
                .iter()
                .for_each(|node| Reader { file, violations: &mut violations }.document(node, &mut manifest)),
            Err((line, reason)) => {
                violations.push(Violation { at: At { file: file.clone(), line }, field: String::new(), reason });
            }
        }
    }
    violations.extend(duplicates(&manifest));
    violations.sort();
    if violations.is_empty() { Ok(manifest) } else { Err(violations) }
}

/// Returns a violation for each object that is described twice.
fn duplicates(manifest: &Manifest) -> Vec<Violation> {
    let people = manifest.people.iter().map(|one| (&one.at, "people", one.email.to_lowercase()));
    let integrations = manifest.integrations.iter().map(|one| (&one.at, "integrations", one.name.clone()));
    let credentials =
        manifest.credentials.iter().map(|one| (&one.at, "credentials", format!("{} {}", one.namespace, one.name)));
    let receivers = manifest.receivers.iter().map(|one| (&one.at, "receivers", one.address.clone()));
    let mut seen = BTreeSet::new();
    let again = people
        .chain(integrations)
        .chain(receivers)
        .chain(credentials)
        .filter(|(_, kind, name)| !seen.insert((*kind, name.clone())));
    again
        .map(|(at, kind, name)| Violation {
            at: at.clone(),
            field: kind.to_owned(),
            reason: format!("{name} is described twice"),
        })
        .collect()
}

struct Reader<'a> {
    file: &'a Path,
    violations: &'a mut Vec<Violation>,
}

impl Reader<'_> {
    fn at(&self, line: usize) -> At {
        At { file: self.file.to_owned(), line }
    }

    fn violation(&mut self, line: usize, field: &str, reason: impl Into<String>) {
        self.violations.push(Violation { at: self.at(line), field: field.to_owned(), reason: reason.into() });
    }

    fn document(&mut self, node: &Node, manifest: &mut Manifest) {
        let Some(mut members) = self.members(node, "", &["set", "people", "integrations", "receivers", "credentials"])
        else {
            return;
        };
        let line = node.line;
        if let Some(set) = self.text(&mut members, line, "set") {
            if let Err(violation) = ManagedBy::parse(&set, "set") {
                self.violation(line, "set", violation.detail);
            }
            if manifest.set.is_empty() {
                manifest.set = set;
            } else if manifest.set != set {
                self.violation(line, "set", format!("is {set}, and another document's is {}", manifest.set));
            }
        }
        for node in self.list(&mut members, "people") {
            let person = self.person(node);
            manifest.people.extend(person);
        }
        for node in self.list(&mut members, "integrations") {
            let integration = self.integration(node);
            manifest.integrations.extend(integration);
        }
        for node in self.list(&mut members, "receivers") {
            let receiver = self.receiver(node);
            manifest.receivers.extend(receiver);
        }
        for node in self.list(&mut members, "credentials") {
            let credential = self.credential(node);
            manifest.credentials.extend(credential);
        }
    }

    fn person(&mut self, node: &Node) -> Option<Person> {
        let mut members = self.members(node, "people", &["email", "role", "disabled"])?;
        let (email, role) = (self.text(&mut members, node.line, "email"), self.text(&mut members, node.line, "role"));
        let disabled = self.flag(&mut members, "disabled", false);
        Some(Person { at: self.at(node.line), email: email?.to_lowercase(), role: role?, disabled })
    }

    fn integration(&mut self, node: &Node) -> Option<Integration> {
        let known = ["name", "namespaces", "expires_at", "disabled", "token", "trusts"];
        let mut members = self.members(node, "integrations", &known)?;
        let name = self.text(&mut members, node.line, "name");
        let namespaces = self.texts(&mut members, "namespaces");
        if namespaces.is_empty() {
            self.violation(node.line, "namespaces", "is required");
        }
        let trusts = self.list(&mut members, "trusts").into_iter().filter_map(|node| self.trust(node)).collect();
        Some(Integration {
            at: self.at(node.line),
            name: name?,
            namespaces,
            expires_at: self.optional_text(&mut members, "expires_at"),
            disabled: self.flag(&mut members, "disabled", false),
            token: self.flag(&mut members, "token", false),
            trusts,
        })
    }

    fn receiver(&mut self, node: &Node) -> Option<Receiver> {
        let mut members = self.members(node, "receivers", &["webhook", "email", "url", "events", "disabled"])?;
        let (webhook, email) = (self.optional_text(&mut members, "webhook"), self.optional_text(&mut members, "email"));
        let url = members.remove("url").map(|node| (node.line, self.reference(node, "url")));
        let (address, url) = match (webhook, email, url) {
            (Some(webhook), None, Some((line, url))) => (webhook, Some((line, url?))),
            (Some(_), None, None) => {
                self.violation(node.line, "url", "is required: `file: PATH` or `env: NAME` of the webhook's URL");
                return None;
            }
            (None, Some(email), None) => (email.to_lowercase(), None),
            _ => {
                self.violation(node.line, "receivers", "must have webhook and url, or email");
                return None;
            }
        };
        let events = self.texts(&mut members, "events");
        let disabled = self.flag(&mut members, "disabled", false);
        Some(Receiver { at: self.at(node.line), address, url, events, disabled })
    }

    /// Parses the reference to a value that must not be in the document itself.
    fn reference(&mut self, node: &Node, name: &str) -> Option<Datum> {
        if let Value::Map(reference) = &node.value
            && let [(place, Node { value: Value::Text(text), .. })] = &reference[..]
        {
            match &**place {
                "file" => return Some(Datum::File(text.clone())),
                "env" => return Some(Datum::Variable(text.clone())),
                _ => {}
            }
        }
        self.violation(node.line, name, "must be `file: PATH` or `env: NAME`");
        None
    }

    fn trust(&mut self, node: &Node) -> Option<Trust> {
        let mut members = self.members(node, "trusts", &["issuer", "claims", "max_lifetime"])?;
        let issuer = self.text(&mut members, node.line, "issuer");
        let mut claims = BTreeMap::new();
        match members.remove("claims").map(|node| &node.value) {
            Some(Value::Map(all)) => {
                for (name, node) in all {
                    match json(node) {
                        Json::Array(_) | Json::Object(_) => {
                            self.violation(node.line, name, "a claim must be text, a number, true, false or null")
                        }
                        value => {
                            claims.insert(name.clone(), value);
                        }
                    }
                }
            }
            _ => self.violation(node.line, "claims", "is required: claims by JSON pointers, such as \"/sub\""),
        }
        let max_lifetime = self.number(&mut members, "max_lifetime", DEFAULT_LIFETIME_SECONDS);
        Some(Trust { at: self.at(node.line), issuer: issuer?, claims, max_lifetime })
    }

    fn credential(&mut self, node: &Node) -> Option<Credential> {
        let known =
            ["namespace", "name", "type", "labels", "description", "vend", "expires_at", "data_version", "data"];
        let mut members = self.members(node, "credentials", &known)?;
        let namespace = self.text(&mut members, node.line, "namespace");
        let name = self.text(&mut members, node.line, "name");
        let kind = self.text(&mut members, node.line, "type");
        let mut labels = BTreeMap::new();
        if let Some(node) = members.remove("labels") {
            let Value::Map(all) = &node.value else {
                self.violation(node.line, "labels", "must be names with values");
                return None;
            };
            for (name, node) in all {
                match &node.value {
                    _ if OWN_LABELS.contains(&&**name) => {
                        self.violation(node.line, name, "is a label that this command sets itself");
                    }
                    Value::Text(text) => drop(labels.insert(name.clone(), text.clone())),
                    _ => self.violation(node.line, name, "must be text: put it in quotation marks"),
                }
            }
        }
        let vend = self.optional_text(&mut members, "vend");
        let (description, expires_at) =
            (self.optional_text(&mut members, "description"), self.optional_text(&mut members, "expires_at"));
        let data_version = self.number(&mut members, "data_version", 1);
        let (data, kind) = (members.remove("data"), kind?);
        let Some(kind) = CredentialType::parse(&kind) else {
            let all = CredentialType::ALL.map(CredentialType::as_str).join(", ");
            self.violation(node.line, "type", format!("{kind} is unknown; it must be one of {all}"));
            return None;
        };
        let data = self.data(node.line, kind, data);
        Some(Credential {
            at: self.at(node.line),
            namespace: namespace?,
            name: name?,
            kind,
            labels,
            description,
            vend: vend.unwrap_or_else(|| VendRule::default_of(kind).as_str().to_owned()),
            expires_at,
            data_version,
            data,
        })
    }

    fn data(&mut self, line: usize, kind: CredentialType, node: Option<&Node>) -> BTreeMap<String, (usize, Datum)> {
        let mut data = BTreeMap::new();
        let Some(Value::Map(members)) = node.map(|node| &node.value) else {
            self.violation(line, "data", "is required: the fields of the credential's type");
            return data;
        };
        for (name, node) in members {
            let Some(field) = kind.fields().iter().find(|field| field.name == *name) else {
                self.violation(node.line, name, format!("is no field of {}", kind.as_str()));
                continue;
            };
            let datum = match &node.value {
                // It would show a file or a variable of the host to every user of the organization.
                Value::Map(_) if field.class == FieldClass::Location => {
                    self.violation(node.line, name, "is shown to every user, so its value must be in the document");
                    continue;
                }
                Value::Map(reference) => match &reference[..] {
                    [(place, Node { value: Value::Text(text), .. })] if place == "file" => Datum::File(text.clone()),
                    [(place, Node { value: Value::Text(text), .. })] if place == "env" => Datum::Variable(text.clone()),
                    _ => {
                        self.violation(node.line, name, "must be `file: PATH`, `env: NAME` or a value");
                        continue;
                    }
                },
                _ if field.class == FieldClass::Secret => {
                    self.violation(
                        node.line,
                        name,
                        "is a secret, which a document must not contain: use `file: PATH` or `env: NAME`",
                    );
                    continue;
                }
                _ => Datum::Plain(json(node)),
            };
            data.insert(name.clone(), (node.line, datum));
        }
        data
    }

    /// Returns the fields of a map, and reports those that are not in `known`.
    fn members<'n>(&mut self, node: &'n Node, field: &str, known: &[&str]) -> Option<BTreeMap<&'n str, &'n Node>> {
        let Value::Map(members) = &node.value else {
            self.violation(node.line, field, "must be names with values");
            return None;
        };
        for (name, node) in members.iter().filter(|(name, _)| !known.contains(&&**name)) {
            self.violation(node.line, name, format!("is unknown here; expected {}", known.join(", ")));
        }
        Some(members.iter().map(|(name, node)| (&**name, node)).collect())
    }

    fn text(&mut self, members: &mut BTreeMap<&str, &Node>, line: usize, name: &str) -> Option<String> {
        match members.remove(name).map(|node| (node.line, &node.value)) {
            Some((_, Value::Text(text))) if !text.is_empty() => return Some(text.clone()),
            Some((line, _)) => self.violation(line, name, "must be text"),
            None => self.violation(line, name, "is required"),
        }
        None
    }

    fn texts(&mut self, members: &mut BTreeMap<&str, &Node>, name: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for node in self.list(members, name) {
            match &node.value {
                Value::Text(text) => texts.push(text.clone()),
                _ => self.violation(node.line, name, "must be texts"),
            }
        }
        texts
    }

    fn optional_text(&mut self, members: &mut BTreeMap<&str, &Node>, name: &str) -> Option<String> {
        match members.remove(name).map(|node| (node.line, &node.value)) {
            Some((_, Value::Text(text))) => Some(text.clone()),
            Some((_, Value::Null)) | None => None,
            Some((line, _)) => {
                self.violation(line, name, "must be text: put it in quotation marks");
                None
            }
        }
    }

    fn flag(&mut self, members: &mut BTreeMap<&str, &Node>, name: &str, default: bool) -> bool {
        match members.remove(name).map(|node| (node.line, &node.value)) {
            Some((_, Value::Flag(flag))) => *flag,
            None => default,
            Some((line, _)) => {
                self.violation(line, name, "must be true or false");
                default
            }
        }
    }

    fn number(&mut self, members: &mut BTreeMap<&str, &Node>, name: &str, default: i64) -> i64 {
        match members.remove(name).map(|node| (node.line, &node.value)) {
            Some((_, Value::Number(number))) if *number > 0 => *number,
            None => default,
            Some((line, _)) => {
                self.violation(line, name, "must be a positive number");
                default
            }
        }
    }

    fn list<'n>(&mut self, members: &mut BTreeMap<&str, &'n Node>, name: &str) -> Vec<&'n Node> {
        match members.remove(name).map(|node| (node.line, &node.value)) {
            Some((_, Value::List(nodes))) => nodes.iter().collect(),
            Some((_, Value::Null)) | None => Vec::new(),
            Some((line, _)) => {
                self.violation(line, name, "must be a list");
                Vec::new()
            }
        }
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Flag(flag) => Json::from(*flag),
        Value::Number(number) => Json::from(*number),
        Value::Text(text) => Json::from(&**text),
        Value::List(list) => list.iter().map(json).collect(),
        Value::Map(members) => {
            Json::Object(members.iter().map(|(name, node)| (name.clone(), json(node))).collect::<Map<_, _>>())
        }
    }
}
