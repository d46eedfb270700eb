//! Short-lived credentials, from the stores themselves.

use crate::activation::ShortData;
use crate::check::CheckReason;
use crate::credential::CredentialData;
use crate::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use crate::namespace::Namespace;
use crate::time::Timestamp;
use async_trait::async_trait;

/// For what something short-lived is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendOrder {
    /// The integration's organization.
    pub organization: OrganizationId,
    /// The integration.
    pub integration: IntegrationId,
    /// The namespace.
    pub namespace: Namespace,
    /// The activation; names the session at the storage, where that has one.
    pub activation: ActivationId,
    /// The credential.
    pub credential: CredentialId,
    /// Current time.
    pub now: Timestamp,
    /// The requested expiry. If the provider does not support it, the credential expires later or is refused; the result
    /// contains the actual expiry.
    pub expires_at: Timestamp,
}

/// A short-lived credential.
#[derive(Debug)]
pub struct ShortLived {
    /// The data, of the type of the credential it was made from.
    pub data: ShortData,
    /// Time from which it is no longer valid.
    pub expires_at: Timestamp,
}

/// Makes short-lived credentials from long-lived ones. Reaches stores; bounds the time of that itself.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CredentialVendor: Send + Sync {
    /// Something short-lived, no wider than the bucket and prefix of `data`. Asked only where
    /// [`allows_short`](crate::activation::allows_short) says that there can be something.
    ///
    /// # Errors
    /// Why there is nothing.
    async fn vend(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason>;
}
