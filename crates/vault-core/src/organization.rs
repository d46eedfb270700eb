//! Organizations: the tenants, each with its own vault.

mod change;
mod create;
mod find;
mod keys;

pub use change::{DeleteOrganization, SetOrganizationState};
pub use create::CreateOrganization;
pub use find::{FindOrganization, ListOrganizations, ReadOrganization};
pub use keys::{
    CountKeyUses, CountSealed, DestroyOrganizationKey, KEY_REPLACED_AT, MoveCredentials, MovedCredentials, ReadKeyUses,
    RotateOrganization, StartedRotation,
};

use crate::audit::{Affected, Subject};
use crate::entity::{Entity, Index, Kind, Lookup};
use crate::field::Invalid;
use crate::id::OrganizationId;
use crate::port::EntitySealer;
use crate::sealed::OrganizationKeys;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

/// Name of an organization: 1 to 100 characters, no control characters and no leading or trailing space.
///
/// Names are unique, ignoring ASCII case, and stored as entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OrganizationState {
    /// Enabled.
    Active,
    /// Disabled: logins and tokens are refused.
    Disabled,
}

named!(OrganizationState);

/// An organization. Its row belongs to itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Organization {
    /// ID of the organization.
    pub id: OrganizationId,
    /// Its name.
    pub name: OrganizationName,
    /// State: active or disabled.
    pub state: OrganizationState,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Its wrapped keys.
    pub keys: OrganizationKeys,
}

impl Organization {
    /// Returns whether it is active.
    pub fn is_active(&self) -> bool {
        self.state == OrganizationState::Active
    }

    fn lookup(name: &OrganizationName) -> Lookup {
        Lookup::new(Index::OrganizationName, name.uniqueness_key())
    }
}

impl Entity for Organization {
    const KIND: Kind = Kind::Organization;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        vec![Self::lookup(&self.name), Lookup::new(Index::OrganizationState, self.state.as_str())]
    }

    fn rewrapped(&self, sealer: &dyn EntitySealer) -> Result<Option<Self>, &'static str> {
        let keys = sealer.rewrap_keys(self.id, &self.keys)?;
        Ok(keys.map(|keys| Self { keys, ..self.clone() }))
    }

    fn subject(&self, _id: Uuid) -> Affected {
        Subject::Organization(self.id).into()
    }
}
