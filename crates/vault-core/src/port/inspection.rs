//! Port for the integrity check: reads stored rows one by one, so that a damaged row does not hide others.

use super::{AuditLog, RowKey, StoreError, StoredVersions};
use crate::activation::FetchedCredential;
use crate::audit::{AuditEntry, RecordedRow, Subject};
use crate::digest::Digest;
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use async_trait::async_trait;

/// A credential with all of its stored rows.
#[derive(Clone, Debug)]
pub struct WholeCredential {
    /// The credential and its versions, without their data.
    pub versions: StoredVersions,
    /// All versions with their sealed data.
    pub data: Vec<FetchedCredential>,
    /// Digests of its labels, in any order.
    pub labels: Vec<Digest>,
}

/// Query for audit entries that contain the state of a row.
#[derive(Clone, Debug)]
pub struct RecordedStates {
    /// Organization of the entries.
    pub organization: OrganizationId,
    /// Subject of the entries.
    pub subject: Subject,
    /// Kind of row of the subject.
    pub row: RecordedRow,
    /// Namespace of the entries. `None` for any.
    pub namespace: Option<Namespace>,
    /// Maximum number of results.
    pub limit: usize,
}

/// An audit entry that contains states of rows of its subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedSubject {
    /// Subject of the entry.
    pub subject: String,
    /// ID of the entry.
    pub entry: String,
    /// Organization of the entry. The nil ID for entries about the instance.
    pub organization: String,
}

/// Row key as stored: the IDs of the organization and of the row. In a damaged row they may be malformed.
pub type StoredRowKey = (String, String);

/// Maximum number of row keys of [`Inspection::existing_rows`].
pub const MAX_EXISTING: usize = 128;

/// Port that reads rows by their keys.
#[async_trait]
pub trait Inspection: Send + Sync {
    /// Returns the ordered row keys of credentials, including those of disabled organizations.
    async fn credential_places(
        &self,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Result<Vec<StoredRowKey>, StoreError>;

    /// Returns the credential with a row key, or [`StoreError::Integrity`] if one of its rows cannot be decoded or is
    /// missing.
    async fn whole_credential(
        &self,
        organization: OrganizationId,
        id: CredentialId,
    ) -> Result<Option<WholeCredential>, StoreError>;

    /// Returns the ordered row keys of credentials that have versions other than the current one, and whether each
    /// credential exists.
    async fn version_places(
        &self,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Result<Vec<(StoredRowKey, bool)>, StoreError>;

    /// Returns the newest entries that contain the state of a row, newest first.
    async fn recorded_states(&self, query: RecordedStates) -> Result<Vec<AuditEntry>, StoreError>;

    /// Returns the entries that contain the state of a row, ordered by subject and ID.
    async fn recorded_subjects(
        &self,
        after: Option<RecordedSubject>,
        limit: usize,
    ) -> Result<Vec<RecordedSubject>, StoreError>;

    /// Returns the rows that exist, in any order. At most [`MAX_EXISTING`] row keys are passed, and none of a namespace.
    async fn existing_rows(&self, row: RecordedRow, places: Vec<RowKey>) -> Result<Vec<RowKey>, StoreError>;
}

/// Ports that an integrity check requires of a store.
pub trait InspectionStore: Inspection + AuditLog {}

impl<S: Inspection + AuditLog + ?Sized> InspectionStore for S {}
