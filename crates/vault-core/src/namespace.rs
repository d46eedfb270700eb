//! Namespaces, in which credentials are saved and which activations name.

mod freeze;
mod list;
mod state;

pub use freeze::{Freezing, NAMESPACE_COUNT_LIMIT, SetFrozen};
pub use list::{ListNamespaces, ListedNamespace};
pub use state::NamespaceState;

use crate::field::{FieldCode, FieldError};
use crate::integration::IntegrationToken;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Namespace: 1 to 128 characters of `A-Z a-z 0-9 . _ - /`, starting with a letter or digit. Compared exactly.
///
/// Deserialization is for stored documents and does not validate: a rule that became stricter must not make them unreadable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Namespace(String);

impl Namespace {
    /// Maximum length of a namespace, in characters.
    pub const MAX_LENGTH: usize = 128;

    /// Parses `text`. `pointer` is its position in the request, for the error.
    ///
    /// # Errors
    /// Returns the rule that the text violates.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        let violation = |code, detail: &'static str| Err(FieldError::new(pointer, code, detail));
        if text.is_empty() {
            return violation(FieldCode::Blank, "must not be empty");
        }
        if text.len() > Self::MAX_LENGTH {
            return violation(FieldCode::TooLong, "must be at most 128 characters");
        }
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte)) {
            return violation(FieldCode::Malformed, "may contain only letters A-Z a-z, digits and . _ - /");
        }
        if !text.as_bytes()[0].is_ascii_alphanumeric() {
            return violation(FieldCode::Malformed, "must start with a letter or digit");
        }
        if IntegrationToken::is_one(text) {
            // Namespaces appear in the audit log and in lists.
            return violation(FieldCode::NotAllowed, "is an integration token; expected a namespace");
        }
        Ok(Self(text.to_owned()))
    }

    /// Creates a namespace from stored text, which was validated when it was written.
    pub(crate) fn from_stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the text of the namespace.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Namespace {
    type Err = FieldError;

    /// Calls [`Namespace::parse`] for a field `/namespace`.
    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::parse(text, "/namespace")
    }
}
