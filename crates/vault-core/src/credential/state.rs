//! Authenticated state of a credential's row.

use super::{CredentialType, VersionList};
use crate::activation::VendRule;
use crate::digest::{Digest, DigestPurpose};
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::port::KeyedDigester;

/// Fields that the MAC of a credential's row covers. An attacker with write access only to the database can therefore
/// not make another version current, restore a destroyed one, relax a vend rule or restore earlier labels. The MAC of a complete old row still
/// verifies, but the integrity check detects its revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialState<'a> {
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// The current version.
    pub version: i64,
    /// The staged version, if any.
    pub staged: Option<i64>,
    /// Highest version number ever assigned, including destroyed versions. No number is assigned twice.
    pub highest: i64,
    /// The versions that exist.
    pub listed: &'a VersionList,
    /// Number of changes by clients, including the save.
    pub revision: i64,
    /// Revision that last changed labels, description and declared expiries, if any exist.
    pub metadata_revision: Option<i64>,
}

impl CredentialState<'_> {
    /// Computes the MAC of the row of this credential.
    pub fn code(&self, digester: &dyn KeyedDigester, organization: OrganizationId, credential: CredentialId) -> Digest {
        self.with_parts(organization, credential, |parts| digester.digest(DigestPurpose::CredentialState, parts))
    }

    /// Returns whether this is the MAC of the row of this credential.
    pub fn fits(
        &self,
        digester: &dyn KeyedDigester,
        (organization, credential): (OrganizationId, CredentialId),
        code: &Digest,
    ) -> bool {
        self.with_parts(organization, credential, |parts| digester.fits(DigestPurpose::CredentialState, parts, code))
    }

    fn with_parts<T>(
        &self,
        organization: OrganizationId,
        credential: CredentialId,
        digest: impl FnOnce(&[&[u8]]) -> T,
    ) -> T {
        // Versions and revisions start at 1, so 0 represents an absent one.
        let numbers =
            [Some(self.version), self.staged, Some(self.highest), Some(self.revision), self.metadata_revision];
        let numbers = numbers.map(|number| number.unwrap_or_default().to_be_bytes());
        let [version, staged, highest, revision, metadata_revision] = numbers.each_ref();
        let parts: [&[u8]; 11] = [
            organization.as_bytes(),
            credential.as_bytes(),
            self.kind.as_str().as_bytes(),
            self.namespace.as_str().as_bytes(),
            self.vend.as_str().as_bytes(),
            version,
            staged,
            highest,
            revision,
            metadata_revision,
            self.listed.as_bytes(),
        ];
        digest(&parts)
    }
}
