//! Claims of an identity token, and the patterns of a trust.

use crate::field::{FieldCode, FieldError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Maximum length of names and values of claims, in bytes.
pub const MAX_VALUE_LENGTH: usize = 1_024;

/// JSON pointer to a claim (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClaimPointer(String);

impl ClaimPointer {
    /// Pointer to the subject, which every trust specifies.
    pub const SUBJECT: &str = "/sub";

    /// Parses a pointer. `field` is its position in the request.
    ///
    /// # Errors
    /// [`FieldCode::Malformed`] if it is not a JSON pointer to a claim.
    pub fn parse(text: &str, field: &str) -> Result<Self, FieldError> {
        let is_pointer = text.starts_with('/') && text.len() > 1 && text.len() <= MAX_VALUE_LENGTH;
        let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        let is_plain = !text.chars().any(char::is_control);
        if is_pointer && escapes && is_plain {
            Ok(Self(text.to_owned()))
        } else {
            let detail =
                "must be a JSON pointer to a claim, such as /sub or /kubernetes.io/namespace with ~1 for each /";
            Err(FieldError::new(field, FieldCode::Malformed, detail))
        }
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClaimPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Required value of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimPattern {
    /// Exactly this text, number or boolean.
    Exact(Value),
    /// Text with this prefix.
    Prefix(String),
}

impl ClaimPattern {
    /// Parses a pattern. Text that ends with `*` is a prefix: the `*` must follow a `:` or `/` after an owner.
    ///
    /// # Errors
    /// [`FieldCode::Malformed`] for a wildcard that covers too much or is in another position. [`FieldCode::WrongType`]
    /// for a value that is not a text, number or boolean.
    pub fn parse(value: &Value, field: &str) -> Result<Self, FieldError> {
        let violation = |code, detail| Err(FieldError::new(field, code, detail));
        match value {
            Value::String(text) if text.is_empty() || text.len() > MAX_VALUE_LENGTH => {
                violation(FieldCode::Malformed, "must have 1 to 1,024 bytes")
            }
            Value::String(text) => match text.strip_suffix('*') {
                None if text.contains('*') => violation(FieldCode::Malformed, "may have one `*`, at its end"),
                None => Ok(Self::Exact(value.clone())),
                Some(prefix) if prefix.contains('*') => violation(FieldCode::Malformed, "may have one `*`, at its end"),
                Some(prefix) if names_an_owner(prefix) => Ok(Self::Prefix(prefix.to_owned())),
                Some(_) => violation(
                    FieldCode::Malformed,
                    "reaches too far: `*` must follow a `:` or `/` behind the owner, as in repo:acme/etl:*",
                ),
            },
            Value::Bool(_) | Value::Number(_) => Ok(Self::Exact(value.clone())),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                violation(FieldCode::WrongType, "must be a string, a number, true or false")
            }
        }
    }

    /// Returns whether a claim's value matches.
    pub fn fits(&self, found: &Value) -> bool {
        match self {
            Self::Exact(value) => value == found,
            Self::Prefix(prefix) => {
                found.as_str().is_some_and(|text| text.len() > prefix.len() && text.starts_with(prefix.as_str()))
            }
        }
    }

    /// Returns its JSON form.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Exact(value) => value.clone(),
            Self::Prefix(prefix) => Value::String(format!("{prefix}*")),
        }
    }
}

/// Returns whether the text before a `*` contains an owner of workloads, in addition to the kind of subject.
fn names_an_owner(prefix: &str) -> bool {
    if !prefix.ends_with([':', '/']) {
        return false;
    }
    let kinds = match prefix {
        _ if prefix.starts_with("system:serviceaccount:") => 2,
        // The trust domain identifies the issuer, so it does not count as an owner.
        _ if prefix.contains("://") => 2,
        _ => 1,
    };
    prefix.split([':', '/']).filter(|segment| !segment.is_empty()).count() > kinds
}
