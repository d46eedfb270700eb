//! Which documents describe an integration.

use crate::credential::is_label_value;
use crate::field::{FieldCode, FieldError};

/// The name of the set of documents that describes an integration, spelt as the value of a label. It grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedBy(String);

impl ManagedBy {
    /// The set named `text`, of the member at `pointer`.
    ///
    /// # Errors
    /// The text is empty, or no value of a label.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        if !text.is_empty() && is_label_value(text) {
            return Ok(Self(text.to_owned()));
        }
        let detail = "must be 1 to 63 characters of A-Z a-z 0-9 . _ -";
        Err(FieldError::new(pointer, FieldCode::Malformed, detail))
    }

    /// The set's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
