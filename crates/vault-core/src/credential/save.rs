//! Saves of credentials.

use super::idempotency::{answered, earlier_request};
use super::{CredentialType, LastCheck, VersionList};
use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::namespace::Namespace;
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::port::{Idempotency, StoredMetadata};
use crate::sealed::{SealedCredential, SealedMetadata};
use crate::time::Timestamp;
use futures_util::try_join;

/// Saves a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Version to which the sealed parts are bound.
    pub version: i64,
    /// The list of this version.
    pub listed: VersionList,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Sealed parts. Their organization key must still be active.
    pub sealed: SealedCredential,
    /// Sealed metadata with label digests and vend rule.
    pub description: StoredMetadata,
    /// [MAC](super::CredentialState::code) of the row at revision 1.
    pub code: Digest,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Result of the check before the save, if any.
    pub check: Option<LastCheck>,
    /// Idempotency key, if any.
    pub idempotency: Option<Idempotency>,
    /// Maximum number of credentials of the organization.
    pub limit: i64,
}

impl SaveCredential {
    /// Returns the refusal for an exceeded credential limit.
    pub const fn limit_reached(&self) -> Refusal {
        Refusal::LimitReached { what: "credentials", limit: self.limit }
    }
}

impl Operation for SaveCredential {
    /// ID of the credential, or of the one that an earlier request with the same idempotency key saved.
    type Outcome = CredentialId;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    /// Refused as [`Refusal::Contended`] if the organization key is no longer active: seal again.
    async fn run(&self, unit: &Unit<'_>) -> Result<CredentialId, Failure> {
        let (rows, organization) = (unit.rows(), self.organization);
        let ((), earlier, key_is_active, credentials) = try_join!(
            unit.authorize(),
            earlier_request(unit, organization, self.idempotency.as_ref()),
            flat(rows.is_active_key(organization, self.sealed.key)),
            flat(rows.credential_count(organization)),
        )?;
        if let Some((credential, _)) = answered(unit, earlier, self.idempotency.as_ref())? {
            return Ok(credential);
        }
        if !key_is_active || !is_under_one_key(self.sealed.key, self.description.metadata.as_ref()) {
            return Err(Refusal::Contended.into());
        }
        if credentials >= self.limit {
            return Err(self.limit_reached().into());
        }
        let saved = Subject::Credential(self.id).left(RecordedRow::Credential, RowState::Revision(1));
        let saved = saved.within(self.namespace.clone());
        let inserted = rows.insert_credential(self, unit.now());
        unit.write_and_record(inserted, Some(organization), AuditAction::CredentialSaved, saved).await?;
        Ok(self.id)
    }
}

/// Returns whether data and metadata are sealed with one key. Otherwise the key was replaced while they were being
/// sealed.
pub(super) fn is_under_one_key(key: KeyId, metadata: Option<&SealedMetadata>) -> bool {
    metadata.is_none_or(|metadata| metadata.key == key)
}
