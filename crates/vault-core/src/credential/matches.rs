//! Comparisons of data with that of a credential.

use crate::audit::{AuditAction, Subject};
use crate::error::Refusal;
use crate::hourly::HourlyLimit;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::StoredCredential;

/// Counts and records a comparison, and reads the credential to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchCredential(pub OrganizationId, pub CredentialId);

impl Operation for MatchCredential {
    type Outcome = StoredCredential;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.0)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredCredential, Failure> {
        let Self(organization, id) = *self;
        let found = unit.authorized(unit.rows().credential(organization, id)).await?.ok_or(Refusal::NotFound)?;
        unit.count_hourly(organization, &format!("match:{id}"), HourlyLimit::MATCHES).await?;
        let subject = Subject::Credential(id).into();
        unit.record(Some(organization), AuditAction::CredentialMatched, subject).await?;
        Ok(found)
    }
}
