//! Who used a credential, and who may still use a version of it.

use crate::error::Refusal;
use crate::id::{CredentialId, IntegrationId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;
use futures_util::try_join;

/// The activations of one integration that issued one version of a credential last, as far as they are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The integration, which may have been deleted.
    pub integration: IntegrationId,
    /// The version.
    pub version: i64,
    /// Number of activations.
    pub activations: i64,
    /// Start of the last one.
    pub last_activated_at: Timestamp,
    /// Time at which the last of those expires that have neither ended nor expired.
    pub until: Option<Timestamp>,
}

/// Returns the current version of a credential, and its holders of all versions, ordered by integration and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListHolders(pub OrganizationId, pub CredentialId);

impl Operation for ListHolders {
    type Outcome = (i64, Vec<Holder>);
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.0)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        unit.authorize().await?;
        let rows = unit.rows();
        let (version, holders) =
            try_join!(rows.current_version(self.0, self.1), rows.holders(self.0, self.1, unit.now()))?;
        Ok((version.ok_or(Refusal::NotFound)?, holders))
    }
}
