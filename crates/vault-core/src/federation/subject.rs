//! Subject of federation tokens.

use crate::id::{CredentialId, OrganizationId};
use std::fmt;
use uuid::Uuid;

/// Value of the `sub` claim: `organization:<uuid>:credential:<uuid>`, 97 bytes. IDs are not reused, so each subject belongs
/// to one credential forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FederationSubject {
    organization: OrganizationId,
    credential: CredentialId,
}

impl FederationSubject {
    /// Returns the subject of a credential.
    pub const fn new(organization: OrganizationId, credential: CredentialId) -> Self {
        Self { organization, credential }
    }

    /// Returns a subject that belongs to no credential. A provider that accepts it accepts every organization.
    pub const fn of_no_credential(random: Uuid) -> Self {
        Self { organization: OrganizationId::from_uuid(Uuid::nil()), credential: CredentialId::from_uuid(random) }
    }
}

impl fmt::Display for FederationSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "organization:{}:credential:{}", self.organization, self.credential)
    }
}
