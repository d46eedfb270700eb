//! Purpose of an activation, as the integration states it.

use crate::field::{FieldCode, FieldError};
use crate::integration::is_printable;

/// Purpose: 1 to 200 printable characters. It appears only in the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purpose(String);

impl Purpose {
    /// Maximum length of a purpose, in characters.
    pub const MAX_LENGTH: usize = 200;

    /// Parses `text`. `pointer` is its position in the request, for the error.
    ///
    /// # Errors
    /// Returns the rule that the text violates.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        let violation = |code, detail: &'static str| Err(FieldError::new(pointer, code, detail));
        if text.trim().is_empty() {
            return violation(FieldCode::Blank, "must not be empty or blank; leave it out instead");
        }
        if text.chars().count() > Self::MAX_LENGTH {
            return violation(FieldCode::TooLong, "must be at most 200 characters");
        }
        if !text.chars().all(is_printable) {
            return violation(FieldCode::ControlCharacter, "must not contain control or invisible characters");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text of the purpose.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
