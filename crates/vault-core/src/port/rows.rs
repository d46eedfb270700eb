//! Port: the rows of one open transaction. Its methods read and write rows and know no rules.
//!
//! `try_join!` of several calls is one exchange with PostgreSQL, because each statement is sent when its future is first
//! polled. SQLite and memory return a completed future.

use super::{NamePosition, RecordedStates, StoreError};
use crate::audit::{AuditEntry, SealedAuditRecord};
use crate::entity::{EntityKey, Index};
use crate::id::{KeyId, OrganizationId};
use crate::integration::Integration;
use crate::namespace::Namespace;
use crate::operation::Work;
use crate::organization::OrganizationState;
use crate::principal::{SessionFacts, SessionPrincipal};
use crate::sealed::Blob;
use crate::time::Timestamp;
use async_trait::async_trait;
use futures_util::future::{BoxFuture, Either, Ready};
use std::any::Any;
use std::fmt;
use uuid::Uuid;
use zeroize::Zeroizing;

/// Error of a store within a transaction. Only the store that created it can read it, and decides about a retry.
pub struct RowsError(pub Box<dyn Any + Send + Sync>);

impl fmt::Debug for RowsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowsError").finish_non_exhaustive()
    }
}

/// Result of a method of [`Rows`]. Allocates only where the store waits.
pub type Reply<'t, T> = Either<Ready<Result<T, RowsError>>, BoxFuture<'t, Result<T, RowsError>>>;

/// Row of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRow {
    /// Key of the row.
    pub key: EntityKey,
    /// Version of the entity.
    pub version: i64,
    /// Sealed document.
    pub sealed: Blob,
}

/// Row of a lookup, which may have been changed outside the service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookupRow {
    /// Organization of the value.
    pub organization: OrganizationId,
    /// Stored text of the index.
    pub index: String,
    /// The value.
    pub value: String,
    /// The entity to which the value leads.
    pub id: Uuid,
}

/// Entities of all kinds, and the values by which they are found.
pub trait EntityRows: Send + Sync {
    /// Reads an entity.
    fn entity(&self, key: EntityKey) -> Reply<'_, Option<EntityRow>>;

    /// Inserts an entity. Returns `false` if the row exists.
    fn insert_entity(&self, row: &EntityRow) -> Reply<'_, bool>;

    /// Replaces an entity. Returns `false` if the row does not have the version `before`.
    fn replace_entity(&self, before: i64, row: &EntityRow) -> Reply<'_, bool>;

    /// Replaces the sealed document of a row that is unchanged, without a new version: for rotations.
    fn reseal_entity(&self, row: &EntityRow, sealed: &Blob) -> Reply<'_, bool>;

    /// Reads rows of all kinds in the order of their [keys](EntityKey::order): for rotations and integrity checks.
    fn entities_after(&self, after: Option<EntityKey>, limit: usize) -> Reply<'_, Vec<EntityRow>>;

    /// Reads entities with their values in an index, in the order of organizations and values, of one organization or of all.
    fn listed_entities(
        &self,
        index: Index,
        of: Option<OrganizationId>,
        after: Option<NamePosition>,
        limit: usize,
    ) -> Reply<'_, Vec<(String, EntityRow)>>;

    /// Reads the lookups of all organizations in the order of organization, index and value: for integrity checks.
    fn lookups_after(&self, after: Option<LookupRow>, limit: usize) -> Reply<'_, Vec<LookupRow>>;

    /// Returns the entity to which a value leads.
    fn find(&self, organization: OrganizationId, index: Index, value: &str) -> Reply<'_, Option<Uuid>>;

    /// Makes a value lead to an entity. Returns `false` if it leads to one already.
    fn enter(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool>;

    /// Removes a value that leads to an entity. Returns `false` if it does not.
    fn leave(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool>;
}

/// Facts that authorize principals. In a transaction that writes, they stay unchanged until it ends.
pub trait AuthorityRows: Send + Sync {
    /// Reads the facts about a session at `now`.
    fn session_facts(&self, session: &SessionPrincipal, now: Timestamp) -> Reply<'_, SessionFacts>;

    /// Reads the state of an organization, if it exists.
    fn organization_state(&self, organization: OrganizationId) -> Reply<'_, Option<OrganizationState>>;
}

/// Namespaces of credentials, and the integrations that may activate them.
pub trait NamespaceRows: Send + Sync {
    /// Counts the credentials of a namespace, up to `most`.
    fn count_in(&self, organization: OrganizationId, namespace: &Namespace, most: usize) -> Reply<'_, i64>;

    /// Returns the first namespace after a text that has credentials.
    fn namespace_after(&self, organization: OrganizationId, after: &str) -> Reply<'_, Option<Namespace>>;

    /// Reads the readable integrations of an organization and locks them, so that none activates until the transaction ends.
    fn lock_integrations(&self, organization: OrganizationId) -> Reply<'_, Vec<Integration>>;
}

/// The audit log.
pub trait AuditRows: Send + Sync {
    /// Appends an entry.
    fn append_entry(&self, entry: &SealedAuditRecord) -> Reply<'_, ()>;

    /// Reads the newest entries that contain the state of a row, newest first.
    fn recorded(&self, query: &RecordedStates) -> Reply<'_, Vec<AuditEntry>>;
}

/// All rows of a transaction.
pub trait Rows: EntityRows + AuthorityRows + NamespaceRows + AuditRows {
    /// Locks an organization for writing until the transaction ends. What is read afterwards is current and stays so.
    fn lock(&self, organization: OrganizationId) -> Reply<'_, ()>;

    /// Returns the active instance key, which stays active until the transaction ends.
    fn active_instance_key(&self) -> Reply<'_, Option<KeyId>>;
}

/// Store port for operations.
#[async_trait]
pub trait RowStore: Send + Sync {
    /// Runs work in one transaction, alone or with other work that shares its commit. Returns it with its outcome after the
    /// commit is durable.
    async fn submit(&self, work: Box<dyn Work>) -> Result<Box<dyn Work>, StoreError>;
}

/// Port that seals the documents of entities with the active instance key, and opens them with all existing ones. Without
/// I/O, so it can be used in a transaction.
pub trait EntitySealer: Send + Sync {
    /// Returns the loaded instance key that seals documents.
    fn active_key(&self) -> KeyId;

    /// Returns whether the key that sealed a document is loaded, or the document names none.
    fn has_key_of(&self, sealed: &Blob) -> bool;

    /// Seals a document for a row with this key and version.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn seal(&self, key: &EntityKey, version: i64, document: &[u8]) -> Result<Blob, super::SealError>;

    /// Opens the document of a row with this key and version.
    ///
    /// # Errors
    /// Why it does not open.
    fn open(&self, key: &EntityKey, version: i64, sealed: &Blob) -> Result<Zeroizing<Vec<u8>>, &'static str>;
}
