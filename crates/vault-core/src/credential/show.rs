//! Reads of one credential and of its versions, without their data.

use crate::error::Refusal;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::{StoredCredential, StoredVersions};

/// Reads a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowCredential(pub OrganizationId, pub CredentialId);

impl Operation for ShowCredential {
    type Outcome = StoredCredential;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.0)
    }

    fn is_one_exchange(&self) -> bool {
        true
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredCredential, Failure> {
        let row = unit.authorized(unit.rows().credential(self.0, self.1)).await?;
        row.ok_or_else(|| Refusal::NotFound.into())
    }
}

/// Reads a credential with its other versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListVersions(pub OrganizationId, pub CredentialId);

impl Operation for ListVersions {
    type Outcome = StoredVersions;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.0)
    }

    fn is_one_exchange(&self) -> bool {
        true
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredVersions, Failure> {
        let versions = unit.authorized(unit.rows().credential_versions(self.0, self.1)).await?;
        versions.ok_or_else(|| Refusal::NotFound.into())
    }
}

/// Reads a credential immediately before a change. Runs with those that write: the embedded database has the pages in the memory
/// of its writer, and operations that share a transaction share the authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialForChange(pub OrganizationId, pub CredentialId);

impl Operation for CredentialForChange {
    type Outcome = StoredCredential;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.0)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredCredential, Failure> {
        ShowCredential(self.0, self.1).run(unit).await
    }
}
