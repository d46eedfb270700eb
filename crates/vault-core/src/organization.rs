//! Organizations: the tenants, each with a vault of its own.

use crate::audit::RowState;
use crate::field::Invalid;
use crate::id::OrganizationId;
use crate::time::Timestamp;
use std::fmt;

/// An organization's name: 1 to 100 characters, no control characters, no space around it.
///
/// Names are unique without regard to ASCII case, and kept as they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationName(String);

const INVALID: Invalid = Invalid(
    "an organization name must have 1 to 100 characters, no control characters and no leading or trailing space",
);

impl OrganizationName {
    /// The longest name, in characters.
    pub const MAX_LENGTH: usize = 100;

    /// The name `text`.
    ///
    /// # Errors
    /// The text breaks one of the rules above.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let sound = !text.is_empty()
            && text.chars().count() <= Self::MAX_LENGTH
            && text.trim() == text
            && !text.chars().any(|c| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'));
        if sound { Ok(Self(text.to_owned())) } else { Err(INVALID) }
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What must be unique: the name in ASCII lower case.
    pub fn uniqueness_key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for OrganizationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether an organization's accounts may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrganizationState {
    /// In use.
    Active,
    /// Closed for now: nobody logs in, no token works.
    Disabled,
}

impl OrganizationState {
    /// The state that the audit records.
    pub const fn recorded(self) -> RowState {
        match self {
            Self::Active => RowState::Open,
            Self::Disabled => RowState::Closed,
        }
    }

    /// The state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }

    /// Returns the state with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Disabled].into_iter().find(|state| state.as_str() == text)
    }
}

/// An organization as its operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// ID of the organization.
    pub id: OrganizationId,
    /// Its name.
    pub name: OrganizationName,
    /// Whether it is in use.
    pub state: OrganizationState,
    /// Time of creation.
    pub created_at: Timestamp,
}
