//! Reading stored rows one by one, to inspect them. One damaged row hides no other.

use super::{
    AuditLog, EventRepository, InstancePart, InstancePlace, InstanceRow, IssuerRepository, StoreError, StoredVersions,
    TakenCredential,
};
use crate::audit::{AuditEntry, RecordedRow, Subject};
use crate::digest::{Digest, LookUpDigests};
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::organization::OrganizationState;
use async_trait::async_trait;

/// A credential with all that is stored of it.
#[derive(Clone, Debug)]
pub struct WholeCredential {
    /// The credential and its versions, without their data.
    pub versions: StoredVersions,
    /// Each of the versions with its sealed data.
    pub sealed: Vec<TakenCredential>,
    /// The digests of its labels, in no order.
    pub labels: Vec<Digest>,
}

/// Login throttle buckets that are locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedState {
    /// Whether it is as a whole.
    pub state: OrganizationState,
    /// Its frozen namespaces, in any order.
    pub frozen: Vec<Namespace>,
}

/// Which entries to find.
#[derive(Clone, Debug)]
pub struct RecordedStates {
    /// The organization that they name.
    pub organization: OrganizationId,
    /// Their subject.
    pub subject: Subject,
    /// Which of its rows.
    pub row: RecordedRow,
    /// The namespace that they name; `None`: whichever.
    pub namespace: Option<Namespace>,
    /// Maximum number of results.
    pub limit: usize,
}

/// Where a row is, as it is stored: the id of its organization, and its own. Neither need be an id, if the row is damaged.
pub type StoredPlace = (String, String);

/// What a row is looked up by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookUp {
    /// The address of an account or an invitation.
    Address(LookUpDigests),
    /// The enrolment code of an invitation.
    EnrolmentCode(Digest),
    /// A token of an integration.
    Token(Digest),
    /// The name of an integration, as it is unique.
    Name(String),
    /// The name of an organization, as its row has it.
    OwnName,
    /// The account of a seed, or the invitation of a draft.
    Owner,
}

/// Reads rows by their place.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Inspection: Send + Sync {
    /// The places of rows of a part, in their order, whichever key the rows name.
    async fn instance_places(
        &self,
        part: InstancePart,
        after: Option<StoredPlace>,
        limit: usize,
    ) -> Result<Vec<StoredPlace>, StoreError>;

    /// The row at a place. [`StoreError::Integrity`]: it does not decode.
    async fn instance_row(&self, part: InstancePart, place: InstancePlace) -> Result<Option<InstanceRow>, StoreError>;

    /// The places of credentials, in their order, those of disabled organizations included.
    async fn credential_places(&self, after: Option<StoredPlace>, limit: usize)
    -> Result<Vec<StoredPlace>, StoreError>;

    /// The credential at a place. [`StoreError::Integrity`]: one of its rows does not decode, or is missing.
    async fn whole_credential(
        &self,
        organization: OrganizationId,
        id: CredentialId,
    ) -> Result<Option<WholeCredential>, StoreError>;

    /// Through which tables the row at a place is not found by what it is looked up by.
    async fn missing_look_ups(
        &self,
        part: InstancePart,
        place: InstancePlace,
        expected: Vec<LookUp>,
    ) -> Result<Vec<&'static str>, StoreError>;

    /// The places of credentials that have versions beside the current one, in their order, and whether each is there.
    async fn version_places(
        &self,
        after: Option<StoredPlace>,
        limit: usize,
    ) -> Result<Vec<(StoredPlace, bool)>, StoreError>;

    /// What of an organization is closed.
    async fn closures(&self, organization: OrganizationId) -> Result<Option<ClosedState>, StoreError>;

    /// The newest entries that say what was left of a row, newest first.
    async fn recorded_states(&self, query: RecordedStates) -> Result<Vec<AuditEntry>, StoreError>;
}

/// What an inspection needs of a store.
pub trait InspectionStore: Inspection + AuditLog + IssuerRepository + EventRepository {}

impl<S: Inspection + AuditLog + IssuerRepository + EventRepository + ?Sized> InspectionStore for S {}
