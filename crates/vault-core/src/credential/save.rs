//! Saves of credentials.

use super::idempotency::{answered, earlier_request};
use super::{Card, CardVersion, CredentialData, CredentialType, LastCheck, Metadata, SecretBytes};
use crate::activation::VendRule;
use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId, OrganizationId, VersionId};
use crate::namespace::Namespace;
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::organization::Organization;
use crate::port::{CardContext, CredentialContext, Idempotency};
use crate::sealed::{Blob, SealedData};
use crate::time::Timestamp;
use futures_util::try_join;

/// Version of a new credential.
const FIRST_VERSION: i64 = 1;
/// Revision of a new credential.
const FIRST_REVISION: i64 = 1;

/// Saves a credential.
#[derive(Debug, PartialEq, Eq)]
pub struct SaveCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Its namespace.
    pub namespace: Namespace,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// Labels, description and declared expiry.
    pub metadata: Metadata,
    /// Its first version.
    pub new: NewData,
    /// Maximum number of credentials of the organization.
    pub limit: i64,
}

/// Data of a version to create.
#[derive(Debug)]
pub struct NewData {
    /// ID of the version, to which the data is bound.
    pub id: VersionId,
    /// The data.
    pub data: CredentialData,
    /// The same as canonical JSON, which is sealed.
    pub json: SecretBytes,
    /// Result of the check before it is stored, if any.
    pub check: Option<LastCheck>,
    /// Idempotency key, if any.
    pub idempotency: Option<Idempotency>,
}

impl PartialEq for NewData {
    fn eq(&self, other: &Self) -> bool {
        let Self { id, data, json, check, idempotency } = self;
        (id, data.kind(), check, idempotency) == (&other.id, other.data.kind(), &other.check, &other.idempotency)
            && *json == other.json
    }
}

impl Eq for NewData {}

/// A version to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVersion {
    /// Version number.
    pub number: i64,
    /// Sealed data.
    pub data: SealedData,
    /// Result of the check before it is stored, if any.
    pub check: Option<LastCheck>,
    /// Idempotency key, if any.
    pub idempotency: Option<Idempotency>,
}

/// A credential to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCredentialRow {
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
    /// The organization key that sealed card and data.
    pub key: KeyId,
    /// Its card at revision 1.
    pub card: Blob,
    /// Its first version.
    pub version: NewVersion,
    /// A lookup digest of each label, in any order.
    pub labels: Vec<Digest>,
    /// Time of the save.
    pub at: Timestamp,
}

impl NewData {
    /// Returns the entry of the version in the card.
    pub(super) fn version(&self, unit: &Unit<'_>, owner: &Organization, number: i64) -> Result<CardVersion, Failure> {
        let information = self.data.information(unit.fingerprint(owner, &self.json)?);
        let (id, created_at, expires_at) = (self.id, unit.now(), self.data.expires_at());
        Ok(CardVersion { number, id, created_at, superseded: None, expires_at, information })
    }

    /// Seals the data for its place.
    pub(super) fn seal(
        &self,
        unit: &Unit<'_>,
        owner: &Organization,
        credential: CredentialId,
        (number, namespace): (i64, &Namespace),
    ) -> Result<NewVersion, Failure> {
        let context = CredentialContext { organization: owner.id, credential, version: number, id: self.id };
        let data = unit.seal_data(owner, context, namespace, &self.json)?;
        Ok(NewVersion { number, data, check: self.check, idempotency: self.idempotency.clone() })
    }
}

impl Operation for SaveCredential {
    /// ID of the credential, or of the one that an earlier request with the same idempotency key saved.
    type Outcome = CredentialId;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<CredentialId, Failure> {
        let Self { organization, id, ref namespace, vend, ref metadata, ref new, limit } = *self;
        let (rows, idempotency) = (unit.rows(), new.idempotency.as_ref());
        let ((), earlier, credentials) = try_join!(
            unit.authorize(),
            earlier_request(unit, organization, idempotency),
            flat(rows.credential_count(organization)),
        )?;
        if let Some((credential, _)) = answered(unit, earlier, idempotency)? {
            return Ok(credential);
        }
        if credentials >= limit {
            return Err(Refusal::LimitReached { what: "credentials", limit }.into());
        }
        let owner = unit.sealing_owner(organization).await?;
        let card = Card {
            kind: new.data.kind(),
            namespace: namespace.clone(),
            vend,
            highest: FIRST_VERSION,
            current: new.version(unit, &owner, FIRST_VERSION)?,
            others: Vec::new(),
            metadata: metadata.clone(),
        };
        let context = CardContext { organization, credential: id, revision: FIRST_REVISION };
        let row = NewCredentialRow {
            organization,
            id,
            kind: card.kind,
            namespace: namespace.clone(),
            vend,
            expires_at: card.expires_at(),
            key: owner.keys.active.id,
            card: unit.seal_card(&owner, context, &card)?,
            version: new.seal(unit, &owner, id, (FIRST_VERSION, namespace))?,
            labels: metadata.labels.digests(unit.digester(), organization),
            at: unit.now(),
        };
        let saved = Subject::Credential(id).left(RecordedRow::Credential, RowState::Revision(FIRST_REVISION));
        let saved = saved.within(namespace.clone());
        let inserted = rows.insert_credential(&row);
        unit.write_and_record(inserted, Some(organization), AuditAction::CredentialSaved, saved).await?;
        Ok(id)
    }
}
