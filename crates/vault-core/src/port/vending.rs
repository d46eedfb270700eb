//! Port for short-lived credentials, which storage providers issue.

use crate::activation::ShortData;
use crate::check::CheckReason;
use crate::credential::CredentialData;
use crate::federation::FederationSubject;
use crate::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use crate::namespace::Namespace;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Request for a short-lived credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendOrder {
    /// Organization of the integration.
    pub organization: OrganizationId,
    /// ID of the integration. `None` for a check of a saved credential.
    pub integration: Option<IntegrationId>,
    /// Namespace of the credential.
    pub namespace: Namespace,
    /// ID of the activation, which names the session at the storage provider if it has names. `None` for a check.
    pub activation: Option<ActivationId>,
    /// ID of the credential.
    pub credential: CredentialId,
    /// Current time.
    pub now: Timestamp,
    /// Requested expiry. If the provider does not support it, the credential expires later or is refused. The result
    /// contains the actual expiry.
    pub expires_at: Timestamp,
}

impl VendOrder {
    /// Returns the subject of the credential's federation tokens.
    pub const fn subject(&self) -> FederationSubject {
        FederationSubject::new(self.organization, self.credential)
    }
}

/// A short-lived credential.
#[derive(Debug)]
pub struct ShortLived {
    /// Data, of the type [as which](crate::credential::CredentialType::issued_as) the credential is issued.
    pub data: ShortData,
    /// Time from which it is no longer valid.
    pub expires_at: Timestamp,
}

/// Port that issues short-lived credentials from long-lived ones. It connects to storage providers and limits the
/// duration itself.
#[async_trait]
pub trait CredentialVendor: Send + Sync {
    /// Issues a short-lived credential that is limited to the bucket and prefix of `data`. Called only if
    /// [`allows_short`](crate::activation::allows_short) succeeds and, for a keyless credential of an activation, if its
    /// provider trust is closed.
    ///
    /// # Errors
    /// The reason why none is issued.
    async fn vend(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason>;
}
