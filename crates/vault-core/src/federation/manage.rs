//! Operations on signing keys.

use super::{KeyActions, PublicationChecks, SigningKeyChange, SigningKeys};
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, Subject};
use crate::entity::{EntityKey, Kind, OF_INSTANCE, Opened};
use crate::error::Refusal;
use crate::id::KeyId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::EntityRow;
use uuid::Uuid;

/// Maximum number of documents that are read. There is one, unless others were added outside the service.
const DOCUMENTS: usize = 16;

/// The signing keys as stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredSigningKeys {
    /// ID and version of the document, if it exists.
    pub document: Option<(Uuid, i64)>,
    /// The keys.
    pub keys: SigningKeys,
    /// Results of their publication checks.
    pub checks: PublicationChecks,
    /// IDs of documents that do not open, or that are not in the state that was recorded last: they were put back outside the
    /// service. Their keys are neither published nor used.
    pub damaged: Vec<Uuid>,
}

/// The document of signing keys, and the IDs of those that are damaged.
type Found = (Option<Opened<SigningKeys>>, Vec<Uuid>);

async fn find(unit: &Unit<'_>, rows: Vec<EntityRow>) -> Result<Found, Failure> {
    let (mut found, mut damaged) = (None, Vec::new());
    for row in rows {
        match unit.open_last_recorded(&row).await? {
            Some(opened) => found = Some(opened),
            None => damaged.push(row.key.id),
        }
    }
    Ok((found, damaged))
}

/// Reads the publication checks of a document. `None` if they do not exist or do not open: the next check replaces them.
async fn checks(unit: &Unit<'_>, id: Uuid) -> Result<Option<Opened<PublicationChecks>>, Failure> {
    let key = EntityKey { organization: OF_INSTANCE, kind: Kind::PublicationChecks, id };
    Ok(unit.rows().entity(key).await?.map(|row| unit.open_or_report(&row)).transpose()?.flatten())
}

/// Reads the signing keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSigningKeys;

impl Operation for ListSigningKeys {
    type Outcome = StoredSigningKeys;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredSigningKeys, Failure> {
        unit.authorize().await?;
        let first = EntityKey { organization: OF_INSTANCE, kind: Kind::SigningKeys, id: Uuid::nil() };
        let mut rows = unit.rows().entities_after(Some(first), DOCUMENTS).await?;
        rows.retain(|row| (row.key.organization, row.key.kind) == (OF_INSTANCE, Kind::SigningKeys));
        let (found, damaged) = find(unit, rows).await?;
        let Some(found) = found else { return Ok(StoredSigningKeys { damaged, ..StoredSigningKeys::default() }) };
        let document = Some((found.key().id, found.version()));
        let checks = checks(unit, found.key().id).await?.map(Opened::into_value).unwrap_or_default();
        Ok(StoredSigningKeys { document, keys: found.into_value(), checks, damaged })
    }
}

/// Changes the signing keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSigningKeys {
    /// The change.
    pub change: SigningKeyChange,
    /// ID of the document, if it does not exist.
    pub id: Uuid,
    /// True if a server makes the change, and no operator.
    pub by_system: bool,
}

impl Operation for ChangeSigningKeys {
    /// The actions on keys. If there are none, nothing was written.
    type Outcome = KeyActions;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<KeyActions, Failure> {
        unit.authorize().await?;
        // Several changes run one after the other.
        let rows = unit.rows().lock_entities(OF_INSTANCE, Kind::SigningKeys).await?;
        let (before, damaged) = find(unit, rows).await?;
        let id = before.as_ref().map_or(self.id, |before| before.key().id);
        let checks = checks(unit, id).await?.map(Opened::into_value).unwrap_or_default();
        let keys = before.as_ref().map(|before| (**before).clone()).unwrap_or_default();
        let (after, actions) = keys.changed(&self.change, &checks, unit.now()).map_err(Refusal::from)?;
        if actions.is_empty() {
            return Ok(actions);
        }
        match &before {
            Some(before) => unit.replace(before, &after).await?,
            None => self.insert(unit, &after, &damaged).await?,
        }
        for (action, kid) in &actions {
            self.record(unit, id, *action, Some(kid.clone())).await?;
        }
        Ok(actions)
    }
}

impl ChangeSigningKeys {
    /// Inserts the document, and removes damaged ones.
    async fn insert(&self, unit: &Unit<'_>, keys: &SigningKeys, damaged: &[Uuid]) -> Result<(), Failure> {
        for id in damaged {
            unit.remove::<PublicationChecks>(OF_INSTANCE, *id).await?;
            unit.remove::<SigningKeys>(OF_INSTANCE, *id).await?;
            self.record(unit, *id, AuditAction::FederationKeyRemoved, None).await?;
        }
        match unit.insert(OF_INSTANCE, self.id, keys).await {
            // Another process was faster.
            Err(Failure::Refused(Refusal::NameTaken)) => Err(Refusal::Contended.into()),
            inserted => inserted,
        }
    }

    async fn record(
        &self,
        unit: &Unit<'_>,
        document: Uuid,
        action: AuditAction,
        kid: Option<String>,
    ) -> Result<(), Failure> {
        let change = match action {
            AuditAction::FederationKeyRetired | AuditAction::FederationKeyRemoved => {
                AuditChange::new(ChangedField::Key, kid, None)
            }
            _ => AuditChange::new(ChangedField::Key, None, kid),
        };
        let affected = Affected::from(Subject::SigningKeys(KeyId::from_uuid(document))).changing([change]);
        match self.by_system {
            true => unit.record_by_system(None, action, affected).await,
            false => unit.record(None, action, affected).await,
        }
    }
}

/// Records the results of publication checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPublication {
    /// ID of the document of signing keys.
    pub document: Uuid,
    /// The results as read.
    pub before: PublicationChecks,
    /// The results of another check.
    pub after: PublicationChecks,
}

impl Operation for RecordPublication {
    /// `false` if another check was recorded since the results were read. Nothing is changed then.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        unit.authorize().await?;
        // Several checks run one after the other.
        unit.rows().lock_entities(OF_INSTANCE, Kind::SigningKeys).await?;
        let found = checks(unit, self.document).await?;
        if found.as_deref().unwrap_or(&PublicationChecks::default()) != &self.before {
            return Ok(false);
        }
        let written = match &found {
            Some(found) => unit.replace(found, &self.after).await,
            None => {
                unit.remove::<PublicationChecks>(OF_INSTANCE, self.document).await?; // if they do not open
                unit.insert(OF_INSTANCE, self.document, &self.after).await
            }
        };
        match written {
            // Another process was faster.
            Err(Failure::Damaged { .. } | Failure::Refused(Refusal::NameTaken)) => Ok(false),
            written => {
                written?;
                unit.commit_without_entry();
                Ok(true)
            }
        }
    }
}
