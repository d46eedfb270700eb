//! The changes that a set of documents requires: a pure function of the documents and the existing objects.

use super::document::{Credential, Integration, Manifest, Person, Receiver, Trust};
use super::{DATA_VERSION, MANAGED_BY, NAME, Violation};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vault_client::{
    AccountItem, ChangeReceiverRequest, CredentialItem, DescribeRequest, IntegrationChange, IntegrationItem,
    IssuerItem, ReceiverItem, TrustItem,
};
use vault_core::credential::FieldClass;
use vault_core::receiver::EventKinds;

/// The existing objects of the organization.
#[derive(Clone, Debug, Default)]
pub(crate) struct Present {
    pub(crate) people: Vec<AccountItem>,
    pub(crate) integrations: Vec<IntegrationItem>,
    pub(crate) issuers: Vec<IssuerItem>,
    pub(crate) receivers: Vec<ReceiverItem>,
    /// Credentials with the label `name`.
    pub(crate) credentials: Vec<CredentialItem>,
}

/// A change. If it needs several requests and is interrupted, the next plan contains the remaining ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Invite { email: String, role: String },
    Withdraw { id: String, email: String },
    UpdatePerson { id: String, email: String, role: Option<String>, disabled: Option<bool> },
    CreateIntegration(Integration),
    UpdateIntegration { id: String, name: String, change: IntegrationChange },
    Trust { id: String, name: String, trust: Trust },
    Distrust { id: String, name: String, trust: TrustItem },
    AddReceiver(Receiver),
    UpdateReceiver { id: String, address: String, change: ChangeReceiverRequest },
    Save(Box<Credential>),
    Replace { id: String, from: i64, credential: Box<Credential> },
    Describe { id: String, place: String, changes: Vec<String>, request: DescribeRequest },
    Delete { id: String, place: String },
    DeleteIntegration { id: String, name: String },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invite { email, role } => write!(f, "+ person {email}: invite as {role}"),
            Self::Withdraw { email, .. } => write!(f, "- invitation of {email}"),
            Self::UpdatePerson { email, role, disabled, .. } => {
                let role = role.as_ref().map(|role| format!("role becomes {role}"));
                let state = disabled.map(|disabled| if disabled { "is disabled" } else { "is enabled" }.to_owned());
                write!(f, "~ person {email}: {}", role.into_iter().chain(state).collect::<Vec<_>>().join(", "))
            }
            Self::CreateIntegration(Integration { name, namespaces, trusts, token, .. }) => {
                let token = if *token { ", with a token" } else { "" };
                write!(f, "+ integration {name}: {}, {} trusts{token}", namespaces.join(", "), trusts.len())
            }
            Self::UpdateIntegration { name, change, .. } => {
                let namespaces =
                    change.namespaces.as_ref().map(|names| format!("namespaces become {}", names.join(", ")));
                let expiry = change.expires_at.as_ref().map(|at| match at {
                    Some(at) => format!("expires {at}"),
                    None => "does not expire".to_owned(),
                });
                let state = change.state.as_ref().map(|state| format!("becomes {state}"));
                let set = change
                    .managed_by
                    .as_ref()
                    .map(|set| format!("{MANAGED_BY} becomes {}", set.as_deref().unwrap_or("none")));
                write!(
                    f,
                    "~ integration {name}: {}",
                    namespaces.into_iter().chain(expiry).chain(state).chain(set).collect::<Vec<_>>().join(", ")
                )
            }
            Self::Trust { name, trust, .. } => {
                write!(f, "~ integration {name}: trusts {} of {}", claims(&trust.claims), trust.issuer)
            }
            Self::Distrust { name, trust, .. } => {
                write!(f, "~ integration {name}: no longer trusts {} of {}", claims(&trust.claims), trust.issuer)
            }
            Self::AddReceiver(Receiver { address, events, .. }) => {
                let events = if events.is_empty() { "all events".to_owned() } else { events.join(", ") };
                write!(f, "+ receiver {address}: {events}")
            }
            Self::UpdateReceiver { address, change, .. } => {
                let events = change.events.as_ref().map(|events| match events.is_empty() {
                    true => "gets all events".to_owned(),
                    false => format!("gets {}", events.join(", ")),
                });
                let state = change.state.as_ref().map(|state| format!("becomes {state}"));
                write!(f, "~ receiver {address}: {}", events.into_iter().chain(state).collect::<Vec<_>>().join(", "))
            }
            Self::Save(credential) => {
                write!(f, "+ credential {} {}: {}", credential.namespace, credential.name, credential.kind.as_str())
            }
            Self::Replace { from, credential, .. } => {
                let Credential { namespace, name, data_version, .. } = &**credential;
                write!(f, "~ credential {namespace} {name}: new data, {DATA_VERSION} {from} becomes {data_version}")
            }
            Self::Describe { place, changes, .. } => write!(f, "~ credential {place}: {}", changes.join(", ")),
            Self::Delete { place, .. } => write!(f, "- credential {place}"),
            Self::DeleteIntegration { name, .. } => write!(f, "- integration {name}"),
        }
    }
}

fn claims(claims: &BTreeMap<String, Value>) -> String {
    claims.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The changes in order.
pub(crate) type Planned = Vec<Change>;

/// Returns the required changes in the order of execution. With `prune`, credentials and integrations of the set that
/// the documents no longer contain are deleted.
pub(crate) fn plan(manifest: &Manifest, present: &Present, prune: bool) -> Result<Planned, Vec<Violation>> {
    let (mut changes, mut violations) = (Vec::new(), Vec::new());
    for integration in &manifest.integrations {
        violations.extend(unknown_issuers(integration, present));
        match present.integrations.iter().find(|one| one.name == integration.name) {
            None => changes.push(Change::CreateIntegration(integration.clone())),
            Some(found) => match found.managed_by.as_ref().filter(|set| **set != manifest.set) {
                Some(set) => violations.push(Violation {
                    at: integration.at.clone(),
                    field: "name".to_owned(),
                    reason: format!("the set {set} describes it, too"),
                }),
                None => changes.extend(change_integration(&manifest.set, integration, found)),
            },
        }
    }
    for credential in &manifest.credentials {
        match change_credential(&manifest.set, credential, present) {
            Ok(found) => changes.extend(found),
            Err(violation) => violations.push(violation),
        }
    }
    for receiver in &manifest.receivers {
        match change_receiver(receiver, present) {
            Ok(found) => changes.extend(found),
            Err(violation) => violations.push(violation),
        }
    }
    for person in &manifest.people {
        let invitations = |found: &&AccountItem| found.state == "invited" && is_of(person, found);
        if person.disabled && present.people.iter().any(|found| invitations(&found)) {
            // Enrolment would make it active.
            let withdraw = |found: &AccountItem| Change::Withdraw { id: found.id.clone(), email: found.email.clone() };
            changes.extend(present.people.iter().filter(invitations).map(withdraw));
            continue;
        }
        let Some(found) = present.people.iter().find(|found| is_of(person, found)) else {
            if person.disabled {
                continue; // see `uninvited`
            }
            changes.push(Change::Invite { email: person.email.clone(), role: person.role.clone() });
            continue;
        };
        let role = (found.role != person.role).then(|| person.role.clone());
        // An invited user is neither active nor disabled.
        let disabled = (found.state == "active" || found.state == "disabled").then_some(found.state == "disabled");
        let disabled = disabled.filter(|disabled| *disabled != person.disabled).map(|_| person.disabled);
        if role.is_some() || disabled.is_some() {
            changes.push(Change::UpdatePerson { id: found.id.clone(), email: person.email.clone(), role, disabled });
        }
    }
    if prune {
        let ours = present.integrations.iter().filter(|one| one.managed_by.as_ref() == Some(&manifest.set));
        let gone = ours.filter(|one| manifest.integrations.iter().all(|other| other.name != one.name));
        changes.extend(gone.map(|one| Change::DeleteIntegration { id: one.id.clone(), name: one.name.clone() }));
        let described: BTreeSet<(&str, &str)> =
            manifest.credentials.iter().map(|one| (&*one.namespace, &*one.name)).collect();
        let ours = present.credentials.iter().filter(|one| label(one, MANAGED_BY) == Some(&manifest.set));
        let gone =
            ours.filter(|one| label(one, NAME).is_some_and(|name| !described.contains(&(&*one.namespace, name))));
        changes.extend(gone.map(|one| Change::Delete { id: one.id.clone(), place: place(one) }));
    }
    violations.sort();
    if violations.is_empty() { Ok(changes) } else { Err(violations) }
}

fn is_of(person: &Person, found: &AccountItem) -> bool {
    found.email.eq_ignore_ascii_case(&person.email)
}

/// Disabled people without an account. They are not invited, because an enrolment makes an active account.
pub(crate) fn uninvited<'a>(manifest: &'a Manifest, present: &Present) -> Vec<&'a str> {
    let has_account =
        |person: &Person| present.people.iter().any(|found| found.state != "invited" && is_of(person, found));
    let uninvited = manifest.people.iter().filter(|person| person.disabled && !has_account(person));
    uninvited.map(|person| &*person.email).collect()
}

/// How it is called.
pub(crate) fn place(item: &CredentialItem) -> String {
    format!("{} {}", item.namespace, label(item, NAME).map_or("", String::as_str))
}

pub(crate) fn label<'a>(item: &'a CredentialItem, name: &str) -> Option<&'a String> {
    item.labels.as_ref().and_then(|labels| labels.get(name))
}

fn unknown_issuers(integration: &Integration, present: &Present) -> Vec<Violation> {
    let unknown =
        integration.trusts.iter().filter(|trust| present.issuers.iter().all(|issuer| issuer.name != trust.issuer));
    unknown
        .map(|trust| Violation {
            at: trust.at.clone(),
            field: "issuer".to_owned(),
            reason: format!("{} is no issuer here; an operator adds it with `orgvault issuer add`", trust.issuer),
        })
        .collect()
}

fn change_integration(set: &str, wanted: &Integration, found: &IntegrationItem) -> Vec<Change> {
    let (id, name) = (found.id.clone(), wanted.name.clone());
    let state = if wanted.disabled { "disabled" } else { "active" };
    let is_disabled = found.state == "disabled";
    let change = IntegrationChange {
        state: (wanted.disabled != is_disabled).then(|| state.to_owned()),
        namespaces: (sorted(&wanted.namespaces) != sorted(&found.namespaces)).then(|| wanted.namespaces.clone()),
        expires_at: (wanted.expires_at != found.expires_at).then(|| wanted.expires_at.clone()),
        managed_by: found.managed_by.is_none().then(|| Some(set.to_owned())),
    };
    let same = |trust: &Trust, item: &TrustItem| {
        trust.issuer == item.issuer && trust.claims == item.claims && trust.max_lifetime == item.max_lifetime
    };
    let new = wanted.trusts.iter().filter(|trust| found.trusts.iter().all(|item| !same(trust, item)));
    let gone = found.trusts.iter().filter(|item| wanted.trusts.iter().all(|trust| !same(trust, item)));
    let changed = (change != IntegrationChange::default()).then(|| Change::UpdateIntegration {
        id: id.clone(),
        name: name.clone(),
        change,
    });
    // Add trusts before removing others, so that jobs stay trusted throughout.
    let new = new.map(|trust| Change::Trust { id: id.clone(), name: name.clone(), trust: trust.clone() });
    let gone = gone.map(|trust| Change::Distrust { id: id.clone(), name: name.clone(), trust: trust.clone() });
    changed.into_iter().chain(new).chain(gone).collect()
}

/// Returns the displayed address of a receiver.
pub(crate) fn address(item: &ReceiverItem) -> &str {
    item.url.as_deref().or(item.to.as_deref()).unwrap_or_default()
}

fn change_receiver(wanted: &Receiver, present: &Present) -> Result<Option<Change>, Violation> {
    let found: Vec<_> = present.receivers.iter().filter(|item| address(item) == wanted.address).collect();
    let item = match found[..] {
        [] => return Ok(Some(Change::AddReceiver(wanted.clone()))),
        [item] => item,
        _ => {
            let reason =
                format!("several receivers have the host {}: documents distinguish receivers by host", wanted.address);
            return Err(Violation { at: wanted.at.clone(), field: "webhook".to_owned(), reason });
        }
    };
    let all: Vec<String> = EventKinds::all(true).iter().map(|kind| kind.to_string()).collect();
    let events = if wanted.events.is_empty() { &all } else { &wanted.events };
    let is_disabled = item.state == "disabled";
    let state = if wanted.disabled { "disabled" } else { "active" };
    let change = ChangeReceiverRequest {
        state: (wanted.disabled != is_disabled).then(|| state.to_owned()),
        events: (sorted(events) != sorted(&item.events)).then(|| wanted.events.clone()),
    };
    let (id, address) = (item.id.clone(), wanted.address.clone());
    Ok((change != ChangeReceiverRequest::default()).then_some(Change::UpdateReceiver { id, address, change }))
}

fn sorted(texts: &[String]) -> Vec<&String> {
    let mut texts: Vec<&String> = texts.iter().collect();
    texts.sort();
    texts
}

/// Returns the labels of a credential that belongs to `set`.
pub(crate) fn labels(set: &str, credential: &Credential) -> BTreeMap<String, String> {
    let own = [
        (NAME, credential.name.clone()),
        (MANAGED_BY, set.to_owned()),
        (DATA_VERSION, credential.data_version.to_string()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    credential.labels.iter().map(|(name, value)| (name.clone(), value.clone())).chain(own).collect()
}

fn change_credential(set: &str, wanted: &Credential, present: &Present) -> Result<Vec<Change>, Violation> {
    let violation = |field: &str, reason: String| Violation { at: wanted.at.clone(), field: field.to_owned(), reason };
    let found = present
        .credentials
        .iter()
        .filter(|item| item.namespace == wanted.namespace && label(item, NAME) == Some(&wanted.name));
    let item = match found.collect::<Vec<_>>()[..] {
        [] => return Ok(vec![Change::Save(Box::new(wanted.clone()))]),
        [item] => item,
        _ => {
            return Err(violation(
                "name",
                format!("{} has several credentials with the label {NAME}: {}", wanted.namespace, wanted.name),
            ));
        }
    };
    if item.kind != wanted.kind.as_str() {
        return Err(violation(
            "type",
            format!("is {}, but the existing credential is {}", wanted.kind.as_str(), item.kind),
        ));
    }
    if let Some(other) = label(item, MANAGED_BY).filter(|other| **other != *set) {
        return Err(violation("name", format!("the set {other} describes it, too")));
    }
    let mut changes = Vec::new();
    // A credential that no document has described yet is adopted with its current data.
    let from = label(item, DATA_VERSION).and_then(|text| text.parse().ok()).unwrap_or(wanted.data_version);
    if wanted.data_version < from {
        return Err(violation("data_version", format!("is {}, and {from} was sent already", wanted.data_version)));
    }
    if wanted.data_version > from {
        changes.push(Change::Replace { id: item.id.clone(), from, credential: Box::new(wanted.clone()) });
    } else if let Some(field) = moved(wanted, item) {
        return Err(violation(
            field,
            "differs from the stored value: increase data_version to send the data".to_owned(),
        ));
    }
    changes.extend(describe(set, wanted, item));
    Ok(changes)
}

/// Returns a location whose value in the document differs from the credential's.
fn moved<'a>(wanted: &'a Credential, item: &CredentialItem) -> Option<&'a str> {
    use super::document::Datum;
    let information = item.information.as_ref()?;
    let places = wanted.kind.fields().iter().filter(|field| field.class == FieldClass::Location);
    places.map(|field| field.name).find(|name| match wanted.data.get(*name) {
        Some((_, Datum::Plain(value))) => information.get(*name) != Some(value),
        Some(_) => false, // a location is no reference
        None => information.contains_key(*name),
    })
}

fn describe(set: &str, wanted: &Credential, item: &CredentialItem) -> Option<Change> {
    let (after, before) = (labels(set, wanted), item.labels.clone().unwrap_or_default());
    let mut changed: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut changes = Vec::new();
    for (name, value) in after.iter().filter(|(name, value)| before.get(*name) != Some(value)) {
        changed.insert(name.clone(), Some(value.clone()));
        changes.push(format!("label {name}={value}"));
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        changed.insert(name.clone(), None);
        changes.push(format!("no label {name}"));
    }
    let vend = (item.vend != wanted.vend).then(|| wanted.vend.clone());
    changes.extend(vend.iter().map(|vend| format!("vend becomes {vend}")));
    let description = (item.description != wanted.description).then(|| wanted.description.clone());
    changes.extend(description.iter().map(|_| "another description".to_owned()));
    // Without an expiry time in the document, that of the data applies.
    let expires_at = wanted.expires_at.clone().filter(|at| item.expires_at.as_ref() != Some(at)).map(Some);
    changes.extend(expires_at.iter().flatten().map(|at| format!("expires {at}")));
    if changes.is_empty() {
        return None;
    }
    let labels = (!changed.is_empty()).then_some(changed);
    let request = DescribeRequest { labels, description, expires_at, vend };
    Some(Change::Describe { id: item.id.clone(), place: place(item), changes, request })
}
