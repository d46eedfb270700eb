//! Changes of a credential: its versions and its description.

use super::idempotency::{answered, earlier_request};
use super::{CredentialEdit, LastCheck, NewData, NewVersion, VersionEffects, VersionLimits};
use crate::activation::VendRule;
use crate::audit::{RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::port::{CardContext, RecordedStates, SealError, StoredCredential};
use crate::sealed::Blob;
use crate::time::Timestamp;
use futures_util::try_join;

/// Changes a credential.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangeCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision that it must still have. `None` overwrites concurrent changes.
    pub revision: Option<i64>,
    /// The change.
    pub edit: CredentialEdit,
    /// Data of a replacement.
    pub new: Option<NewData>,
    /// Limits of its versions.
    pub limits: VersionLimits,
}

/// A completed change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedVersion {
    /// Number of the affected version.
    pub version: i64,
    /// Revision after the change. `None` if this request changed nothing.
    pub revision: Option<i64>,
}

/// A changed row with the row before, for stores.
#[derive(Clone, Debug)]
pub struct CredentialUpdate<'a> {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// The row before the change, which increments its revision.
    pub before: &'a StoredCredential,
    /// The card after the change.
    pub card: Blob,
    /// The current version after the change.
    pub current: i64,
    /// Forms in which the credential may be issued after the change.
    pub vend: VendRule,
    /// Expiry after the change.
    pub expires_at: Option<Timestamp>,
    /// Result of the last check of the version that is current after the change.
    pub check: Option<LastCheck>,
    /// The new version, if any.
    pub version: Option<NewVersion>,
    /// Effects on the other versions.
    pub effects: VersionEffects,
    /// Lookup digests of other labels. `None` leaves the labels unchanged.
    pub labels: Option<Vec<Digest>>,
    /// Time of the change.
    pub at: Timestamp,
}

impl Operation for ChangeCredential {
    type Outcome = ChangedVersion;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    /// A credential that was put back outside the service is never sealed again.
    async fn run(&self, unit: &Unit<'_>) -> Result<ChangedVersion, Failure> {
        let Self { organization, id, revision, ref edit, ref new, limits } = *self;
        let (rows, now) = (unit.rows(), unit.now());
        let idempotency = new.as_ref().and_then(|new| new.idempotency.as_ref());
        let recorded = RecordedStates {
            organization,
            subject: Subject::Credential(id),
            row: RecordedRow::Credential,
            namespace: None,
            limit: 1,
        };
        let ((), newest, earlier, row) = try_join!(
            unit.authorize(),
            flat(rows.recorded(&recorded)),
            earlier_request(unit, organization, idempotency),
            flat(rows.credential(organization, id)),
        )?;
        if let Some((_, version)) = answered(unit, earlier, idempotency)? {
            return Ok(ChangedVersion { version, revision: None });
        }
        let row = row.ok_or(Refusal::NotFound)?;
        if revision.is_some_and(|revision| revision != row.revision) {
            return Err(Refusal::Changed.into());
        }
        let owner = unit.sealing_owner(organization).await?;
        let before = unit.open_card(&owner, &row)?.map_err(Failure::Seal)?;
        let version =
            new.as_ref().map(|new| new.version(unit, &owner, before.highest.saturating_add(1))).transpose()?;
        let (number, after) = edit.apply(&before, version, (unit.principal(), limits, now))?;
        if after == before {
            return Ok(ChangedVersion { version: number, revision: None });
        }
        if !unit.is_newest(recorded, &newest, row.revision).await? {
            return Err(Failure::Seal(SealError::rolled_back_credential(id)));
        }
        let after = after.at(now);
        let revision = row.revision.saturating_add(1);
        let version = new.as_ref().map(|new| new.seal(unit, &owner, id, (number, &after.namespace))).transpose()?;
        let current = after.current.number;
        let check = match &version {
            Some(version) if version.number == current => version.check,
            _ if row.version == current => row.check,
            _ => rows.version_check(organization, id, current).await?,
        };
        let has_other_labels = after.metadata.labels != before.metadata.labels;
        let update = CredentialUpdate {
            organization,
            id,
            before: &row,
            card: unit.seal_card(&owner, CardContext { organization, credential: id, revision }, &after)?,
            current,
            vend: after.vend,
            expires_at: after.expires_at(),
            check,
            version,
            effects: before.effects(&after),
            labels: has_other_labels.then(|| after.metadata.labels.digests(unit.digester(), organization)),
            at: now,
        };
        let (action, changes) = edit.recorded(&before, &after, number);
        let changed = Subject::Credential(id).left(RecordedRow::Credential, RowState::Revision(revision));
        let changed = changed.within(row.namespace.clone()).changing(changes);
        unit.write_and_record(rows.change_credential(&update), Some(organization), action, changed).await?;
        Ok(ChangedVersion { version: number, revision: Some(revision) })
    }
}
