//! The changes that a set of documents requires: a pure function of the documents and the existing objects.

use super::document::{Credential, Integration, Manifest, Person, Receiver, State};
use super::{DATA_VERSION, MANAGED_BY, NAME, Violation};
use crate::text::counted;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vault_client::{
    AccountItem, ChangeIntegrationRequest, ChangeReceiverRequest, CredentialItem, DescribeRequest, IntegrationItem,
    InviteRequest, IssuerItem, ReceiverItem, TrustItem, TrustRequest,
};
use vault_core::activation::VendRule;
use vault_core::credential::{CredentialType, FieldClass};
use vault_core::identity::DEFAULT_LIFETIME_SECONDS;
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
    UpdateIntegration { id: String, name: String, change: ChangeIntegrationRequest },
    Trust { id: String, name: String, trust: TrustRequest },
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
            Self::CreateIntegration(Integration { request, .. }) => {
                let token = if request.token == Some(true) { ", with a token" } else { "" };
                let trusts = counted(request.trusts.iter().flatten().count() as u64, "trust");
                let namespaces = request.namespaces.join(", ");
                write!(f, "+ integration {}: {namespaces}, {trusts}{token}", request.name)
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
                let issuer = trust.issuer.as_str().unwrap_or_default();
                write!(
                    f,
                    "~ integration {name}: trusts {} of {issuer}",
                    claims(trust.claims.as_object().into_iter().flatten())
                )
            }
            Self::Distrust { name, trust, .. } => {
                write!(f, "~ integration {name}: no longer trusts {} of {}", claims(&trust.claims), trust.issuer)
            }
            Self::AddReceiver(Receiver { request, .. }) => {
                let events = &request.events;
                let events = if events.is_empty() { "all events".to_owned() } else { events.join(", ") };
                write!(f, "+ receiver {}: {events}", request.text())
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
                let Credential { own, request, .. } = &**credential;
                write!(f, "+ credential {} {}: {}", request.namespace, own.name, request.kind)
            }
            Self::Replace { from, credential, .. } => {
                let Credential { own, request, .. } = &**credential;
                let becomes = format!("{DATA_VERSION} {from} becomes {}", own.data_version);
                write!(f, "~ credential {} {}: new data, {becomes}", request.namespace, own.name)
            }
            Self::Describe { place, changes, .. } => write!(f, "~ credential {place}: {}", changes.join(", ")),
            Self::Delete { place, .. } => write!(f, "- credential {place}"),
            Self::DeleteIntegration { name, .. } => write!(f, "- integration {name}"),
        }
    }
}

fn claims<'a>(claims: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    claims.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The changes in order.
pub(crate) type Planned = Vec<Change>;

/// Returns the required changes in the order of execution. With `prune`, credentials and integrations of the set that
/// the documents no longer contain are deleted.
pub(crate) fn plan(manifest: &Manifest, present: &Present, prune: bool) -> Result<Planned, Vec<Violation>> {
    let (mut changes, mut violations) = (Vec::new(), Vec::new());
    for integration in &manifest.integrations {
        violations.extend(unknown_issuers(integration, present));
        match present.integrations.iter().find(|one| one.name == integration.request.name) {
            None => changes.push(Change::CreateIntegration(integration.clone())),
            Some(found) => match found.managed_by.as_ref().filter(|set| **set != manifest.set) {
                Some(set) => {
                    violations.push(integration.at.violation("name", format!("the set {set} describes it, too")));
                }
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
        if person.own.disabled && present.people.iter().any(|found| invitations(&found)) {
            // Enrolment would make it active.
            let withdraw = |found: &AccountItem| Change::Withdraw { id: found.id.clone(), email: found.email.clone() };
            changes.extend(present.people.iter().filter(invitations).map(withdraw));
            continue;
        }
        let Some(found) = present.people.iter().find(|found| is_of(person, found)) else {
            if person.own.disabled {
                continue; // see `uninvited`
            }
            changes.push(Change::Invite { email: person.request.email.clone(), role: person.request.role.clone() });
            continue;
        };
        let InviteRequest { email, role } = &person.request;
        let role = (found.role != *role).then(|| role.clone());
        // An invited user is neither active nor disabled.
        let disabled = (found.state == "active" || found.state == "disabled").then_some(found.state == "disabled");
        let disabled = disabled.filter(|disabled| *disabled != person.own.disabled).map(|_| person.own.disabled);
        if role.is_some() || disabled.is_some() {
            changes.push(Change::UpdatePerson { id: found.id.clone(), email: email.clone(), role, disabled });
        }
    }
    if prune {
        let ours = present.integrations.iter().filter(|one| one.managed_by.as_ref() == Some(&manifest.set));
        let gone = ours.filter(|one| manifest.integrations.iter().all(|other| other.request.name != one.name));
        changes.extend(gone.map(|one| Change::DeleteIntegration { id: one.id.clone(), name: one.name.clone() }));
        let described: BTreeSet<(&str, &str)> =
            manifest.credentials.iter().map(|one| (&*one.request.namespace, &*one.own.name)).collect();
        let ours = present.credentials.iter().filter(|one| label(one, MANAGED_BY) == Some(&manifest.set));
        let gone =
            ours.filter(|one| label(one, NAME).is_some_and(|name| !described.contains(&(&*one.namespace, name))));
        changes.extend(gone.map(|one| Change::Delete { id: one.id.clone(), place: place(one) }));
    }
    violations.sort();
    if violations.is_empty() { Ok(changes) } else { Err(violations) }
}

fn is_of(person: &Person, found: &AccountItem) -> bool {
    found.email.eq_ignore_ascii_case(&person.request.email)
}

/// Disabled people without an account. They are not invited, because an enrolment makes an active account.
pub(crate) fn uninvited<'a>(manifest: &'a Manifest, present: &Present) -> Vec<&'a str> {
    let has_account =
        |person: &Person| present.people.iter().any(|found| found.state != "invited" && is_of(person, found));
    let uninvited = manifest.people.iter().filter(|person| person.own.disabled && !has_account(person));
    uninvited.map(|person| &*person.request.email).collect()
}

/// How it is called.
pub(crate) fn place(item: &CredentialItem) -> String {
    format!("{} {}", item.namespace, label(item, NAME).map_or("", String::as_str))
}

pub(crate) fn label<'a>(item: &'a CredentialItem, name: &str) -> Option<&'a String> {
    item.labels.as_ref().and_then(|labels| labels.get(name))
}

fn unknown_issuers(integration: &Integration, present: &Present) -> Vec<Violation> {
    let trusts = integration.request.trusts.iter().flatten().enumerate();
    let unknown = trusts.filter(|(_, trust)| present.issuers.iter().all(|issuer| trust.issuer != *issuer.name));
    unknown
        .map(|(number, trust)| {
            let name = trust.issuer.as_str().unwrap_or_default();
            let reason =
                format!("{name} does not exist on this server; an operator adds it with `orgvault issuer add`");
            integration.at.violation(&format!("trusts/{number}/issuer"), reason)
        })
        .collect()
}

fn change_integration(set: &str, wanted: &Integration, found: &IntegrationItem) -> Vec<Change> {
    let Integration { own, request: wanted, .. } = wanted;
    let (id, name) = (found.id.clone(), wanted.name.clone());
    let change = ChangeIntegrationRequest {
        state: change_state(own, &found.state),
        namespaces: (sorted(&wanted.namespaces) != sorted(&found.namespaces)).then(|| wanted.namespaces.clone()),
        expires_at: (wanted.expires_at != found.expires_at).then(|| wanted.expires_at.clone()),
        managed_by: found.managed_by.is_none().then(|| Some(set.to_owned())),
    };
    let same = |trust: &TrustRequest, item: &TrustItem| {
        let lifetime = trust.max_lifetime.as_ref().map_or(Some(DEFAULT_LIFETIME_SECONDS), Value::as_i64);
        trust.issuer == item.issuer && trust.claims == json!(item.claims) && lifetime == Some(item.max_lifetime)
    };
    let trusts = wanted.trusts.as_deref().unwrap_or_default();
    let new = trusts.iter().filter(|trust| found.trusts.iter().all(|item| !same(trust, item)));
    let gone = found.trusts.iter().filter(|item| trusts.iter().all(|trust| !same(trust, item)));
    let changed = (change != ChangeIntegrationRequest::default()).then(|| Change::UpdateIntegration {
        id: id.clone(),
        name: name.clone(),
        change,
    });
    // Add trusts before removing others, so that jobs stay trusted throughout.
    let new = new.map(|trust| Change::Trust { id: id.clone(), name: name.clone(), trust: trust.clone() });
    let gone = gone.map(|trust| Change::Distrust { id: id.clone(), name: name.clone(), trust: trust.clone() });
    changed.into_iter().chain(new).chain(gone).collect()
}

/// Returns the new state of an object that is described with another one.
fn change_state(wanted: &State, found: &str) -> Option<String> {
    let state = if wanted.disabled { "disabled" } else { "active" };
    (wanted.disabled != (found == "disabled")).then(|| state.to_owned())
}

/// Returns the displayed address of a receiver.
pub(crate) fn address(item: &ReceiverItem) -> &str {
    item.url.as_deref().or(item.to.as_deref()).unwrap_or_default()
}

fn change_receiver(wanted: &Receiver, present: &Present) -> Result<Option<Change>, Violation> {
    let found: Vec<_> = present.receivers.iter().filter(|item| address(item) == wanted.request.text()).collect();
    let item = match found[..] {
        [] => return Ok(Some(Change::AddReceiver(wanted.clone()))),
        [item] => item,
        _ => {
            let several = format!("several receivers have the host {}", wanted.request.text());
            return Err(wanted.at.violation("webhook", format!("{several}: documents distinguish receivers by host")));
        }
    };
    let all: Vec<String> = EventKinds::all(true).iter().map(|kind| kind.to_string()).collect();
    let events = &wanted.request.events;
    let events_or_all = if events.is_empty() { &all } else { events };
    let change = ChangeReceiverRequest {
        state: change_state(&wanted.own, &item.state),
        events: (sorted(events_or_all) != sorted(&item.events)).then(|| events.clone()),
    };
    let (id, address) = (item.id.clone(), wanted.request.text().to_owned());
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
        (NAME, credential.own.name.clone()),
        (MANAGED_BY, set.to_owned()),
        (DATA_VERSION, credential.own.data_version.to_string()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let labels = credential.request.labels.iter().flatten();
    labels.map(|(name, value)| (name.clone(), value.clone())).chain(own).collect()
}

fn change_credential(set: &str, wanted: &Credential, present: &Present) -> Result<Vec<Change>, Violation> {
    let Credential { at, own, request } = wanted;
    let is_it = |item: &&CredentialItem| item.namespace == request.namespace && label(item, NAME) == Some(&own.name);
    let found = present.credentials.iter().filter(is_it);
    let item = match found.collect::<Vec<_>>()[..] {
        [] => return Ok(vec![Change::Save(Box::new(wanted.clone()))]),
        [item] => item,
        _ => {
            let several = format!("{} has several credentials with the label {NAME}", request.namespace);
            return Err(at.violation("name", format!("{several}: {}", own.name)));
        }
    };
    if item.kind != request.kind {
        let reason = format!("is {}, but the existing credential is {}", request.kind, item.kind);
        return Err(at.violation("type", reason));
    }
    if let Some(other) = label(item, MANAGED_BY).filter(|other| **other != *set) {
        return Err(at.violation("name", format!("the set {other} describes it, too")));
    }
    let mut changes = Vec::new();
    // A credential that no document has described yet is adopted with its current data.
    let from = label(item, DATA_VERSION).and_then(|text| text.parse().ok()).unwrap_or(own.data_version);
    if own.data_version < from {
        return Err(at.violation("data_version", format!("is {}, and {from} was sent already", own.data_version)));
    }
    if own.data_version > from {
        changes.push(Change::Replace { id: item.id.clone(), from, credential: Box::new(wanted.clone()) });
    } else if let Some(field) = moved(wanted, item) {
        let reason = "differs from the stored value: increase data_version to send the data";
        return Err(at.violation(&format!("data/{field}"), reason));
    }
    changes.extend(describe(set, wanted, item));
    Ok(changes)
}

/// Returns a location whose value in the document differs from the credential's.
fn moved(wanted: &Credential, item: &CredentialItem) -> Option<&'static str> {
    let information = item.information.as_ref()?;
    let fields = wanted.kind().map(CredentialType::fields).unwrap_or_default().iter();
    let mut places = fields.filter(|field| field.class == FieldClass::Location).map(|field| field.name);
    places.find(|name| wanted.request.data.get(*name) != information.get(*name))
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
    let wanted = &wanted.request;
    let default = CredentialType::parse(&wanted.kind).map(VendRule::default_of).unwrap_or_default();
    let vend = wanted.vend.as_deref().unwrap_or(default.as_str());
    let vend = (item.vend != vend).then(|| vend.to_owned());
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
