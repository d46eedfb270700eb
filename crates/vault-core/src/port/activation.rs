//! Port for activations in the store.

use super::{AuditLog, KeyedDigester, StoreError};
use crate::activation::{Activation, IssuanceRefusal, IssuedCredential, Purpose, VendMode, VendRule};
use crate::audit::SealedAuditRecord;
use crate::command::Command;
use crate::credential::{CredentialState, CredentialType, VersionList};
use crate::digest::Digest;
use crate::id::{ActivationId, CredentialId, OrganizationId};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::sealed::SealedCredential;
use crate::time::Timestamp;
use async_trait::async_trait;

/// A command of an integration. The store authorizes its principal with
/// [`check_integration`](crate::integration::check_integration).
pub type ForIntegration<A> = Command<A, IntegrationPrincipal>;

/// The activation to start when the credentials of a namespace are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewActivation {
    /// ID of the activation.
    pub id: ActivationId,
    /// Time at which it expires (exclusive end).
    pub expires_at: Timestamp,
    /// Requested form.
    pub vend: VendMode,
    /// Maximum number of active activations of the integration, including this one.
    pub limit: i64,
}

/// Fetches the sealed credentials of a namespace.
#[derive(Clone, Debug)]
pub struct FetchCredentials {
    /// Namespace, compared exactly. The patterns of the principal must cover it.
    pub namespace: Namespace,
    /// The activation to start. `None` for a check, and for the renewal of an activation.
    pub activation: Option<NewActivation>,
    /// Maximum number of credentials that the namespace may contain.
    pub most: usize,
}

/// A stored credential with its sealed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Version that was fetched.
    pub version: i64,
    /// Sealed parts of that version.
    pub sealed: SealedCredential,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// The current version.
    pub current: i64,
    /// The staged version, if any.
    pub staged: Option<i64>,
    /// Highest version number ever assigned, including destroyed versions. No number is assigned twice.
    pub highest: i64,
    /// The versions that exist.
    pub listed: VersionList,
    /// Number of changes by clients, including the save.
    pub revision: i64,
    /// Revision that last changed labels, description and declared expiries, if any exist.
    pub metadata_revision: Option<i64>,
    /// [MAC](CredentialState::code) of the row.
    pub code: Digest,
    /// Time of the last activation, truncated to the minute.
    pub last_activated_at: Option<Timestamp>,
}

impl FetchedCredential {
    /// Returns whether the row's MAC verifies for `namespace`.
    pub fn mac_is_valid(
        &self,
        digester: &dyn KeyedDigester,
        organization: OrganizationId,
        namespace: &Namespace,
    ) -> bool {
        let state = CredentialState {
            kind: self.kind,
            namespace,
            vend: self.vend,
            version: self.current,
            staged: self.staged,
            highest: self.highest,
            listed: &self.listed,
            revision: self.revision,
            metadata_revision: self.metadata_revision,
        };
        state.fits(digester, (organization, self.id), &self.code)
    }
}

/// Decides, as the last step before the response, whether prepared credentials may be issued.
#[derive(Clone, Debug)]
pub struct IssueCredentials {
    /// ID of the started activation.
    pub activation: ActivationId,
    /// Whether an issued activation is renewed. It must still be active, gets the expiry and number of credentials of
    /// this command, and survives a refusal.
    pub renewal: bool,
    /// Time at which it expires (exclusive end).
    pub expires_at: Timestamp,
    /// Its namespace.
    pub namespace: Namespace,
    /// Credentials to issue. Each is recorded as a use of its credential, and a renewal updates this record.
    pub credentials: Vec<IssuedCredential>,
    /// Purpose that the integration stated.
    pub purpose: Option<Purpose>,
    /// Audit record of a refusal, which replaces the command's record.
    pub refused: SealedAuditRecord,
}

/// Reads a page of an integration's active activations.
#[derive(Clone, Debug)]
pub struct ListActivations {
    /// Integration that makes the request.
    pub principal: IntegrationPrincipal,
    /// Position after which the page starts: only older activations are returned.
    pub after: Option<ActivationId>,
    /// Maximum number of results.
    pub limit: usize,
    /// Current time.
    pub now: Timestamp,
}

/// Reads an active activation of an integration.
#[derive(Clone, Debug)]
pub struct FindActivation {
    /// Integration that makes the request.
    pub principal: IntegrationPrincipal,
    /// ID of the activation.
    pub activation: ActivationId,
    /// Current time.
    pub now: Timestamp,
}

/// Ends an activation.
#[derive(Clone, Copy, Debug)]
pub struct EndActivation {
    /// ID of the activation.
    pub activation: ActivationId,
}

/// Removes an activation that issued nothing.
#[derive(Clone, Debug)]
pub struct AbortActivation {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the activation.
    pub activation: ActivationId,
    /// Audit record, which is stored even if the activation no longer exists.
    pub audit: SealedAuditRecord,
}

/// Port for activations. Methods with a principal check it in the same transaction, and refuse one that may no longer
/// make requests with [`Denial::Integration`](crate::principal::Denial::Integration).
#[async_trait]
pub trait ActivationRepository: Send + Sync {
    /// Reads the credentials of a namespace, oldest first (by ID), and starts an activation if requested. The
    /// transaction is serialized with other activations, so that the limit is exact, with changes of the integration
    /// and with freezes of the namespace. Records the last use of the integration's current token, at most once a
    /// minute.
    ///
    /// # Errors
    /// Refuses requests according to [`check_activation`](crate::activation::check_activation).
    async fn fetch_credentials(
        &self,
        command: ForIntegration<FetchCredentials>,
    ) -> Result<Vec<FetchedCredential>, StoreError>;

    /// Decides with [`check_issuance`](crate::activation::check_issuance) whether the prepared credentials may be
    /// issued. The transaction is serialized like the one that fetched them, and also with deletion and replacement of
    /// the credentials, and with renewals and the end of the same activation.
    ///
    /// Returns `None` if they are issued, and then stores the command's audit record. After a refusal, stores
    /// [`IssueCredentials::refused`] and deletes the activation, unless it was to be renewed. An unauthorized principal results
    /// in [`IssuanceRefusal::Denied`], not in an error.
    async fn issue_credentials(
        &self,
        command: ForIntegration<IssueCredentials>,
    ) -> Result<Option<IssuanceRefusal>, StoreError>;

    /// Reads a page of the integration's active activations, newest first (by ID, descending).
    async fn list_activations(&self, query: ListActivations) -> Result<Vec<Activation>, StoreError>;

    /// Returns the integration's active activation with this ID, if any.
    async fn find_activation(&self, query: FindActivation) -> Result<Option<Activation>, StoreError>;

    /// Ends an activation of the integration, deletes its row and records the time in the uses of its credentials. Returns `false` if no active activation has this ID.
    /// If several calls race, exactly one returns `true`.
    async fn end_activation(&self, command: ForIntegration<EndActivation>) -> Result<bool, StoreError>;

    /// Deletes an activation if it still exists, and stores the audit record.
    async fn abort_activation(&self, command: AbortActivation) -> Result<(), StoreError>;
}

/// Ports that activations require of a store. Apart from them, only key rotation and integrity checks read sealed data.
pub trait ActivationStore: ActivationRepository + AuditLog {}

impl<S: ActivationRepository + AuditLog + ?Sized> ActivationStore for S {}
