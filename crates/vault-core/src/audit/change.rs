//! Changed values of an audited action, old and new.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A field of an object that an action can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, EnumString, VariantArray)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum ChangedField {
    /// The role of an account or invitation.
    Role,
    /// The state of an account or integration.
    State,
    /// Namespaces that an integration may activate.
    Namespaces,
    /// Expiry of an object.
    ExpiresAt,
    /// Forms in which a credential may be issued.
    Vend,
    /// Version of a credential that is issued, staged or destroyed.
    Version,
    /// Workloads that may use an integration.
    Trusts,
    /// Workload that used an integration: issuer, subject and ID of its identity token.
    Workload,
    /// Document set that manages an integration.
    ManagedBy,
    /// Events of a receiver.
    Events,
    /// Name of an issuer of identity tokens.
    Issuer,
    /// Labels of a credential. Their values are sealed, so entries do not contain them.
    Labels,
    /// A key with its purpose and ID.
    Key,
    /// Description of a credential. It is sealed, so entries do not contain it.
    Description,
}

named!(ChangedField);

/// A change of one field. If both values are missing, the values are not disclosed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditChange {
    /// Name of the field.
    pub field: String,
    /// Old value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// New value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl AuditChange {
    /// Creates a change of `field`.
    pub fn new(field: ChangedField, from: Option<String>, to: Option<String>) -> Self {
        Self { field: field.as_str().to_owned(), from, to }
    }

    /// Creates a change of `field` if the values differ.
    pub fn between<T: PartialEq>(
        field: ChangedField,
        from: &T,
        to: &T,
        text: impl Fn(&T) -> Option<String>,
    ) -> Option<Self> {
        (from != to).then(|| Self::new(field, text(from), text(to)))
    }

    /// Creates a change of `field` whose values are sealed.
    pub fn withheld(field: ChangedField) -> Self {
        Self::new(field, None, None)
    }
}

/// Returns the changes as an entry contains them, or `None` if there are none.
pub(super) fn text(changes: &[AuditChange]) -> Option<String> {
    if changes.is_empty() { None } else { serde_json::to_string(changes).ok() }
}

/// Parses the changes in an entry's text. Returns none if it is malformed.
pub(super) fn parse(text: &str) -> Vec<AuditChange> {
    serde_json::from_str(text).unwrap_or_default()
}
