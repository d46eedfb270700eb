//! Changes of a credential: its versions and its description.

use super::idempotency::{answered, earlier_request};
use super::{LastCheck, NewVersion, VersionEffects};
use crate::activation::VendRule;
use crate::audit::{AuditAction, AuditChange, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::port::{RecordedStates, SealError, StoredCredential};
use crate::sealed::Blob;
use crate::time::Timestamp;
use futures_util::try_join;

/// Changes a credential unless another client has changed it since it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision that was read. The change increments it.
    pub revision: i64,
    /// The organization key that sealed card and data. It must still be active.
    pub key: KeyId,
    /// The card after the change, sealed for the next revision.
    pub card: Blob,
    /// The current version after the change.
    pub current: i64,
    /// The new version, if any.
    pub version: Option<NewVersion>,
    /// Effects on the other versions.
    pub effects: VersionEffects,
    /// Forms in which the credential may be issued after the change.
    pub vend: VendRule,
    /// Expiry after the change.
    pub expires_at: Option<Timestamp>,
    /// Lookup digests of other labels. `None` leaves the labels unchanged.
    pub labels: Option<Vec<Digest>>,
    /// Action of the audit entry.
    pub action: AuditAction,
    /// Changes in the audit entry.
    pub changes: Vec<AuditChange>,
}

/// A change with the row before it, for stores.
#[derive(Clone, Copy, Debug)]
pub struct CredentialUpdate<'a> {
    /// The change.
    pub change: &'a ChangeCredential,
    /// The row before the change.
    pub before: &'a StoredCredential,
    /// Result of the last check of the version that is current after the change.
    pub check: Option<LastCheck>,
    /// Time of the change.
    pub at: Timestamp,
}

impl Operation for ChangeCredential {
    /// `None`, or the version that an earlier request with the same idempotency key created.
    type Outcome = Option<i64>;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    /// Refused as [`Refusal::Contended`] if the organization key is no longer active: seal again. A credential that was put back
    /// outside the service is never sealed again.
    async fn run(&self, unit: &Unit<'_>) -> Result<Option<i64>, Failure> {
        let (rows, organization, id) = (unit.rows(), self.organization, self.id);
        let idempotency = self.version.as_ref().and_then(|version| version.idempotency.as_ref());
        let recorded = RecordedStates {
            organization,
            subject: Subject::Credential(id),
            row: RecordedRow::Credential,
            namespace: None,
            limit: 1,
        };
        let ((), newest, earlier, key_is_active, before) = try_join!(
            unit.authorize(),
            flat(rows.recorded(&recorded)),
            earlier_request(unit, organization, idempotency),
            flat(rows.is_active_key(organization, self.key)),
            flat(rows.credential(organization, id)),
        )?;
        if let Some((_, number)) = answered(unit, earlier, idempotency)? {
            return Ok(Some(number));
        }
        let before = before.ok_or(Refusal::NotFound)?;
        if before.revision != self.revision {
            return Err(Refusal::Changed.into());
        }
        if !key_is_active {
            return Err(Refusal::Contended.into());
        }
        if !unit.is_newest(recorded, &newest, before.revision).await? {
            return Err(Failure::Seal(SealError::rolled_back_credential(id)));
        }
        let check = match &self.version {
            Some(version) if version.number == self.current => version.check,
            _ if before.version == self.current => before.check,
            _ => rows.version_check(organization, id, self.current).await?,
        };
        let update = CredentialUpdate { change: self, before: &before, check, at: unit.now() };
        let changed = Subject::Credential(id).left(RecordedRow::Credential, RowState::Revision(self.revision + 1));
        let changed = changed.within(before.namespace.clone()).changing(self.changes.clone());
        unit.write_and_record(rows.change_credential(&update), Some(organization), self.action, changed).await?;
        Ok(None)
    }
}
