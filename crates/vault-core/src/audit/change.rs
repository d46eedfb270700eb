//! What an act changed, from what to what.

use serde::{Deserialize, Serialize};

/// A member of what was acted on that an act may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangedField {
    /// The role of an account or invitation.
    Role,
    /// The state of an account or integration.
    State,
    /// The namespaces that an integration may activate.
    Namespaces,
    /// When something expires.
    ExpiresAt,
    /// In which forms a credential may be handed out.
    Vend,
    /// The version of a credential that is handed out, or that is staged or destroyed.
    Version,
    /// The workloads that may act for an integration.
    Trusts,
    /// Who acted for an integration: issuer, subject and id of its identity token.
    Workload,
    /// The set of documents that describes an integration.
    ManagedBy,
    /// What a receiver is told.
    Events,
    /// The name of an issuer of identity tokens.
    Issuer,
    /// The labels of a credential. Their values are sealed, so an entry does not say them.
    Labels,
    /// A key: its purpose and id.
    Key,
    /// The description of a credential. It is sealed, so an entry does not say it.
    Description,
}

impl ChangedField {
    /// The field's name, as the HTTP interface has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::State => "state",
            Self::Namespaces => "namespaces",
            Self::ExpiresAt => "expires_at",
            Self::Vend => "vend",
            Self::Version => "version",
            Self::Trusts => "trusts",
            Self::Workload => "workload",
            Self::ManagedBy => "managed_by",
            Self::Events => "events",
            Self::Issuer => "issuer",
            Self::Labels => "labels",
            Self::Key => "key",
            Self::Description => "description",
        }
    }
}

/// A change of one field. Without either value: what it was and is is not told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditChange {
    /// The field's name.
    pub field: String,
    /// What it was, unless it was nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is, unless it is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl AuditChange {
    /// A change of `field`.
    pub fn new(field: ChangedField, from: Option<String>, to: Option<String>) -> Self {
        Self { field: field.as_str().to_owned(), from, to }
    }

    /// A change of `field` if the two differ.
    pub fn between<T: PartialEq>(
        field: ChangedField,
        from: &T,
        to: &T,
        text: impl Fn(&T) -> Option<String>,
    ) -> Option<Self> {
        (from != to).then(|| Self::new(field, text(from), text(to)))
    }

    /// A change of `field` whose values are sealed.
    pub fn untold(field: ChangedField) -> Self {
        Self::new(field, None, None)
    }
}

/// The changes as an entry has them. `None` without any.
pub(super) fn text(changes: &[AuditChange]) -> Option<String> {
    if changes.is_empty() { None } else { serde_json::to_string(changes).ok() }
}

/// The changes that an entry's text says; none if it is no such text.
pub(super) fn parse(text: &str) -> Vec<AuditChange> {
    serde_json::from_str(text).unwrap_or_default()
}
