//! Names of integrations.

use crate::field::{FieldCode, FieldError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Name of an integration: 1 to 64 printable characters without leading or trailing space.
///
/// Names are unique within the organization, ignoring ASCII case, and stored as entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrationName(String);

impl IntegrationName {
    /// Maximum length of a name, in characters.
    pub const MAX_LENGTH: usize = 64;

    /// Parses `text`. `pointer` is its position in the request, for the error.
    ///
    /// # Errors
    /// Returns the rule that the text violates.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        let violation = |code, detail: &'static str| Err(FieldError::new(pointer, code, detail));
        if text.trim().is_empty() {
            return violation(FieldCode::Blank, "must not be empty or blank");
        }
        if text.chars().count() > Self::MAX_LENGTH {
            return violation(FieldCode::TooLong, "must be at most 64 characters");
        }
        if text.trim() != text {
            return violation(FieldCode::Surrounded, "must not begin or end with white space");
        }
        if !text.chars().all(is_printable) {
            return violation(FieldCode::ControlCharacter, "must not contain control or invisible characters");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as entered.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the form that is unique within the organization: the name in ASCII lower case.
    pub fn uniqueness_key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for IntegrationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether a character is visible: neither a control character, nor one of zero width, nor one that changes the
/// direction of text.
pub(crate) fn is_printable(c: char) -> bool {
    let invisible = matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    !c.is_control() && !invisible
}
