//! Document sets that manage integrations.

use crate::credential::is_label_value;
use crate::field::{FieldCode, FieldError};
use serde::{Deserialize, Serialize};

/// Name of the document set that manages an integration, with the format of a label's value. It grants nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedBy(String);

impl ManagedBy {
    /// Parses the name `text` of the field at `pointer`.
    ///
    /// # Errors
    /// The text is empty, or not a valid value of a label.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        if !text.is_empty() && is_label_value(text) {
            return Ok(Self(text.to_owned()));
        }
        let detail = "must be 1 to 63 characters of A-Z a-z 0-9 . _ -";
        Err(FieldError::new(pointer, FieldCode::Malformed, detail))
    }

    /// Returns the name of the set.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
