//! Comparisons of data with that of a credential.

use super::{CredentialType, SecretBytes};
use crate::audit::{AuditAction, Subject};
use crate::error::Refusal;
use crate::hourly::HourlyLimit;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};

/// Compares data with the current data of a credential by fingerprint, without decryption. Comparisons are counted, limited and
/// recorded.
///
/// # Errors
/// [`Refusal::NotFound`], [`Refusal::TypeDiffers`] or [`Refusal::TooOften`].
#[derive(Debug, PartialEq, Eq)]
pub struct MatchCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Type of the data.
    pub kind: CredentialType,
    /// The data as canonical JSON.
    pub data: SecretBytes,
}

impl Operation for MatchCredential {
    /// Whether they are equal. The error is the type of the credential, which is another one.
    type Outcome = Result<bool, CredentialType>;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let Self { organization, id, kind, ref data } = *self;
        let found = unit.authorized(unit.rows().credential(organization, id)).await?.ok_or(Refusal::NotFound)?;
        unit.count_hourly(organization, &format!("match:{id}"), HourlyLimit::MATCHES).await?;
        let subject = Subject::Credential(id).into();
        unit.record(Some(organization), AuditAction::CredentialMatched, subject).await?;
        if found.kind != kind {
            return Ok(Err(found.kind));
        }
        let owner = unit.owner(organization).await?;
        let card = unit.open_card(&owner, &found)?.map_err(Failure::Seal)?;
        let stored = card.current.information.fingerprint();
        Ok(Ok(stored == Some(unit.fingerprint(&owner, data)?.to_string())))
    }
}
