//! Organizations: the tenants, each with its own vault.

use crate::audit::RowState;
use crate::field::Invalid;
use crate::id::OrganizationId;
use crate::time::Timestamp;
use std::fmt;

/// Name of an organization: 1 to 100 characters, no control characters and no leading or trailing space.
///
/// Names are unique, ignoring ASCII case, and stored as entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationName(String);

const INVALID: Invalid = Invalid(
    "an organization name must have 1 to 100 characters, no control characters and no leading or trailing space",
);

impl OrganizationName {
    /// Maximum length of a name, in characters.
    pub const MAX_LENGTH: usize = 100;

    /// Parses a name.
    ///
    /// # Errors
    /// The text violates one of the rules above.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let sound = !text.is_empty()
            && text.chars().count() <= Self::MAX_LENGTH
            && text.trim() == text
            && !text.chars().any(|c| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'));
        if sound { Ok(Self(text.to_owned())) } else { Err(INVALID) }
    }

    /// Returns the name as entered.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the form that is unique: the name in ASCII lower case.
    pub fn uniqueness_key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for OrganizationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// State of an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrganizationState {
    /// Enabled.
    Active,
    /// Disabled: logins and tokens are refused.
    Disabled,
}

impl OrganizationState {
    /// Returns the state that the audit log records.
    pub const fn recorded(self) -> RowState {
        match self {
            Self::Active => RowState::Open,
            Self::Disabled => RowState::Closed,
        }
    }

    /// Returns the name of the state.
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

/// An organization as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// ID of the organization.
    pub id: OrganizationId,
    /// Its name.
    pub name: OrganizationName,
    /// State: active or disabled.
    pub state: OrganizationState,
    /// Time of creation.
    pub created_at: Timestamp,
}
