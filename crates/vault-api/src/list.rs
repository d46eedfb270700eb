//! Filters of lists. Each field is a parameter of the query, and its comment the description in the API.

use serde::Serialize;

/// Filter of a list of credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListFilter {
    /// Only items in this namespace.
    pub namespace: Option<String>,
    /// Only items of this type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Only items with this label, as name:value. If repeated, items must have all labels.
    #[serde(rename = "label")]
    pub labels: Vec<String>,
    /// Only items in this state.
    pub health: Option<String>,
    /// Only items that expire before this time.
    pub expires_before: Option<String>,
    /// Maximum number of items on a page.
    #[serde(rename = "limit")]
    pub page_size: Option<u32>,
}

/// Filter and order of a list of audit entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditFilter {
    /// Only entries from this time on.
    pub since: Option<String>,
    /// Only entries before this time.
    pub until: Option<String>,
    /// Only entries with this action, such as credential.saved. If repeated, with one of them.
    #[serde(rename = "action")]
    pub actions: Vec<String>,
    /// Only denied requests, and credentials that could not be issued.
    pub outcome: Option<String>,
    /// If false, entries about reads of credential information and of the audit log are left out.
    pub reads: Option<bool>,
    /// Only entries that refer to this object: `credential:<id>`, or only an ID.
    pub subject: Option<String>,
    /// Only entries by this account or integration, as an ID, or by a kind of actor, such as operator.
    pub actor: Option<String>,
    /// Only items in this namespace.
    pub namespace: Option<String>,
    /// Order of the entries: the newest or the oldest first.
    pub order: Option<String>,
    /// Maximum number of items on a page.
    #[serde(rename = "limit")]
    pub page_size: Option<u32>,
}
