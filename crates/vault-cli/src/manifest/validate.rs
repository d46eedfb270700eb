//! Validation of documents by the server's rules, before anything is changed.

use super::OWN_LABELS;
use super::document::{Credential, Datum, Integration, Person, Receiver, datum};
use serde_json::{Value, json};
use vault_core::activation::VendRule;
use vault_core::credential::{CredentialType, Description, FieldClass, Labels};
use vault_core::email::EmailAddress;
use vault_core::field::{FieldCode, FieldError, child};
use vault_core::identity::TrustRequest;
use vault_core::integration::{IntegrationName, ManagedBy, NamespacePatterns};
use vault_core::json::{self, Limits};
use vault_core::namespace::Namespace;
use vault_core::receiver::{EventKinds, check_url};
use vault_core::role::Role;
use vault_core::time::Timestamp;

/// Rules of an element of a list.
pub(crate) trait Check {
    /// Normalizes the element and returns all its errors.
    fn check(&mut self) -> Vec<FieldError>;
}

fn refused(pointer: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new(pointer, FieldCode::WrongType, detail.into())
}

fn time(text: Option<&String>) -> Option<FieldError> {
    text.filter(|text| Timestamp::from_rfc3339(text).is_none())
        .map(|_| refused("expires_at", "must be a time of RFC 3339, such as 2027-01-01T00:00:00Z"))
}

impl Check for Person {
    fn check(&mut self) -> Vec<FieldError> {
        self.request.email = self.request.email.to_lowercase();
        let email = EmailAddress::parse(&self.request.email).err().map(|error| refused("email", error.to_string()));
        let is_known = Role::parse(&self.request.role).is_some();
        email.into_iter().chain((!is_known).then(|| refused("role", "must be admin, editor or viewer"))).collect()
    }
}

impl Check for Integration {
    fn check(&mut self) -> Vec<FieldError> {
        let request = &self.request;
        let mut errors: Vec<_> = IntegrationName::parse(&request.name, "name").err().into_iter().collect();
        errors.extend(NamespacePatterns::parse(&request.namespaces, "namespaces").err().into_iter().flatten());
        errors.extend(time(request.expires_at.as_ref()));
        if request.managed_by.is_some() {
            errors.push(refused("managed_by", "is the set of the document"));
        }
        for (number, trust) in request.trusts.iter().flatten().enumerate() {
            let value = serde_json::to_value(trust).unwrap_or_default();
            errors.extend(TrustRequest::parse(&value, &format!("trusts/{number}")).err().into_iter().flatten());
        }
        errors
    }
}

impl Check for Receiver {
    fn check(&mut self) -> Vec<FieldError> {
        let request = &mut self.request;
        request.email = request.email.as_ref().map(|email| email.to_lowercase());
        let mut errors = Vec::new();
        match (&request.webhook, &request.email, &request.url) {
            (Some(webhook), None, Some(url)) => {
                let is_shown = check_url(webhook, "").is_ok_and(|url| url.masked() == *webhook);
                if !webhook.ends_with("/…") && !is_shown {
                    errors.push(refused("webhook", "must be the URL as it is shown: https://hooks.example.com/…"));
                }
                if !matches!(datum(url), Some(Datum::File(_) | Datum::Variable(_))) {
                    errors.push(refused("url", "must be `file: PATH` or `env: NAME`"));
                }
            }
            (Some(_), None, None) => {
                errors.push(refused("url", "is required: `file: PATH` or `env: NAME` of the webhook's URL"))
            }
            (None, Some(email), None) => {
                errors.extend(EmailAddress::parse(email).err().map(|error| refused("email", error.to_string())))
            }
            _ => errors.push(refused("", "must have webhook and url, or email")),
        }
        errors.extend(EventKinds::parse(&request.events, true, "events").err().into_iter().flatten());
        errors
    }
}

impl Check for Credential {
    fn check(&mut self) -> Vec<FieldError> {
        let request = &self.request;
        let mut errors: Vec<_> = Namespace::parse(&request.namespace, "namespace").err().into_iter().collect();
        // The name becomes a label value, like the name of a set.
        errors.extend(ManagedBy::parse(&self.own.name, "name").err());
        if self.own.data_version < 1 {
            errors.push(refused("data_version", "must be a positive number"));
        }
        if let Some(labels) = &request.labels {
            let own = labels.keys().filter(|name| OWN_LABELS.contains(&name.as_str()));
            errors.extend(own.map(|name| refused(&child("labels", name), "is a label that this command sets itself")));
            if labels.len() + OWN_LABELS.len() > Labels::MAX {
                let most = Labels::MAX - OWN_LABELS.len();
                let reason = format!("must be at most {most}, in addition to {}", OWN_LABELS.join(", "));
                errors.push(refused("labels", reason));
            }
            if let Ok(document) = json::parse(json!(labels).to_string().as_bytes(), Limits::REQUEST) {
                errors.extend(Labels::parse(document.root, "labels").err().into_iter().flatten());
            }
        }
        errors.extend(request.description.as_ref().and_then(|text| Description::parse(text, "description").err()));
        if request.vend.as_ref().is_some_and(|vend| VendRule::parse(vend).is_none()) {
            errors.push(refused("vend", "must be any or short"));
        }
        errors.extend(time(request.expires_at.as_ref()));
        match self.kind() {
            Some(kind) => errors.extend(request.data.iter().filter_map(|(name, value)| field(kind, name, value))),
            None => {
                let all = CredentialType::ALL.map(CredentialType::as_str).join(", ");
                errors.push(refused("type", format!("{} is unknown; it must be one of {all}", request.kind)));
            }
        }
        errors
    }
}

/// Returns the error of a value in the data of a credential.
fn field(kind: CredentialType, name: &str, value: &Value) -> Option<FieldError> {
    let Some(field) = kind.fields().iter().find(|field| field.name == name) else {
        return Some(refused(&child("data", name), format!("is no field of {}", kind.as_str())));
    };
    let reason = match (field.class, datum(value)) {
        // It would show a file or a variable of the host to every user of the organization.
        (FieldClass::Location, _) if value.is_object() => {
            "is shown to every user, so its value must be in the document"
        }
        (_, None) => "must be `file: PATH`, `env: NAME` or a value",
        (FieldClass::Secret, Some(Datum::Plain(_))) => {
            "is a secret, which a document must not contain: use `file: PATH` or `env: NAME`"
        }
        _ => return None,
    };
    Some(refused(&child("data", name), reason))
}
