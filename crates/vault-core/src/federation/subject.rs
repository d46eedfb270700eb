//! Subject of federation tokens.

use crate::id::{CredentialId, OrganizationId};
use std::fmt;

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
}

impl fmt::Display for FederationSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "organization:{}:credential:{}", self.organization, self.credential)
    }
}
