//! Validation of documents by the server's rules, before anything is changed.

use super::document::{Credential, Integration, Manifest, Person, Receiver, Trust};
use super::{At, OWN_LABELS, Violation};
use serde_json::{Value, json};
use vault_core::activation::VendRule;
use vault_core::credential::{Description, Labels};
use vault_core::email::EmailAddress;
use vault_core::field::FieldError;
use vault_core::identity::TrustRequest;
use vault_core::integration::{IntegrationName, ManagedBy, NamespacePatterns};
use vault_core::json::{self, Limits};
use vault_core::namespace::Namespace;
use vault_core::receiver::{EventKinds, check_url};
use vault_core::role::Role;
use vault_core::time::Timestamp;

/// Returns all violations.
pub(crate) fn validate(manifest: &Manifest) -> Vec<Violation> {
    let mut validate = Validator(Vec::new());
    manifest.people.iter().for_each(|one| validate.person(one));
    manifest.integrations.iter().for_each(|one| validate.integration(one));
    manifest.receivers.iter().for_each(|one| validate.receiver(one));
    manifest.credentials.iter().for_each(|one| validate.credential(one));
    validate.0.sort();
    validate.0
}

struct Validator(Vec<Violation>);

impl Validator {
    fn violation(&mut self, at: &At, field: &str, reason: impl Into<String>) {
        self.0.push(Violation { at: at.clone(), field: field.to_owned(), reason: reason.into() });
    }

    /// Prefixes the pointers of a field's violations with its name: `namespaces/0`.
    fn fields(&mut self, at: &At, errors: impl IntoIterator<Item = FieldError>) {
        for error in errors {
            self.violation(at, &error.pointer, error.detail);
        }
    }

    fn time(&mut self, at: &At, text: Option<&String>) {
        if text.is_some_and(|text| Timestamp::from_rfc3339(text).is_none()) {
            self.violation(at, "expires_at", "must be a time of RFC 3339, such as 2027-01-01T00:00:00Z");
        }
    }

    fn person(&mut self, Person { at, email, role, .. }: &Person) {
        if let Err(violation) = EmailAddress::parse(email) {
            self.violation(at, "email", violation.to_string());
        }
        if Role::parse(role).is_none() {
            self.violation(at, "role", "must be admin, editor or viewer");
        }
    }

    fn integration(&mut self, Integration { at, name, namespaces, expires_at, trusts, .. }: &Integration) {
        self.fields(at, IntegrationName::parse(name, "name").err());
        self.fields(at, NamespacePatterns::parse(namespaces, "namespaces").err().into_iter().flatten());
        self.time(at, expires_at.as_ref());
        for Trust { at, issuer, claims, max_lifetime } in trusts {
            let value = json!({"issuer": issuer, "claims": claims, "max_lifetime": max_lifetime});
            self.fields(at, TrustRequest::parse(&value, "trusts").err().into_iter().flatten());
        }
    }

    fn receiver(&mut self, Receiver { at, address, url, events, .. }: &Receiver) {
        match url {
            Some(_) if address.ends_with("/…") || check_url(address, "").is_ok_and(|url| url.masked() == address) => {
            }
            Some(_) => self.violation(at, "webhook", "must be the URL as it is shown: https://hooks.example.com/…"),
            None => {
                if let Err(violation) = EmailAddress::parse(address) {
                    self.violation(at, "email", violation.to_string());
                }
            }
        }
        self.fields(at, EventKinds::parse(events, true, "events").err().into_iter().flatten());
    }

    fn credential(&mut self, credential: &Credential) {
        let Credential { at, namespace, name, labels, description, vend, expires_at, .. } = credential;
        self.fields(at, Namespace::parse(namespace, "namespace").err());
        // The name becomes a label value, like the name of a set.
        self.fields(at, ManagedBy::parse(name, "name").err());
        if labels.len() + OWN_LABELS.len() > Labels::MAX {
            let most = Labels::MAX - OWN_LABELS.len();
            self.violation(at, "labels", format!("must be at most {most}, in addition to {}", OWN_LABELS.join(", ")));
        }
        let labels = Value::from_iter(labels.clone()).to_string();
        if let Ok(document) = json::parse(labels.as_bytes(), Limits::REQUEST) {
            self.fields(at, Labels::parse(document.root, "labels").err().into_iter().flatten());
        }
        self.fields(at, description.as_ref().and_then(|text| Description::parse(text, "description").err()));
        if VendRule::parse(vend).is_none() {
            self.violation(at, "vend", "must be any or short");
        }
        self.time(at, expires_at.as_ref());
    }
}
