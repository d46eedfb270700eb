//! Saves of credentials.

use super::idempotency::{answered, earlier_request};
use super::{CredentialType, LastCheck};
use crate::activation::VendRule;
use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId, OrganizationId, VersionId};
use crate::namespace::Namespace;
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::port::Idempotency;
use crate::sealed::{Blob, SealedData};
use crate::time::Timestamp;
use futures_util::try_join;

/// Saves a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The organization key that sealed card and data. It must still be active.
    pub key: KeyId,
    /// Its card at revision 1.
    pub card: Blob,
    /// Its first version.
    pub version: NewVersion,
    /// A lookup digest of each label, in any order.
    pub labels: Vec<Digest>,
    /// Maximum number of credentials of the organization.
    pub limit: i64,
}

/// A version to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVersion {
    /// Version number, to which the data is bound.
    pub number: i64,
    /// ID of the version, to which the data is bound too.
    pub id: VersionId,
    /// Sealed data.
    pub data: SealedData,
    /// Result of the check before it is stored, if any.
    pub check: Option<LastCheck>,
    /// Idempotency key, if any.
    pub idempotency: Option<Idempotency>,
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
        let (rows, organization, idempotency) = (unit.rows(), self.organization, self.version.idempotency.as_ref());
        let ((), earlier, key_is_active, credentials) = try_join!(
            unit.authorize(),
            earlier_request(unit, organization, idempotency),
            flat(rows.is_active_key(organization, self.key)),
            flat(rows.credential_count(organization)),
        )?;
        if let Some((credential, _)) = answered(unit, earlier, idempotency)? {
            return Ok(credential);
        }
        if !key_is_active {
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
