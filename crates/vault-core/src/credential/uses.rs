//! Who used a credential, and who may still use a version of it.

use crate::activation::{Purpose, VendedForm};
use crate::error::Refusal;
use crate::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use crate::integration::IntegrationName;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;
use futures_util::try_join;

/// Retention of the uses of a credential after the activation expired, in seconds: 30 days.
pub const USE_SECONDS: i64 = 30 * 24 * 3_600;

/// An activation that issued a credential, including its renewals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialUse {
    /// ID of the activation.
    pub activation: ActivationId,
    /// Start of the activation.
    pub at: Timestamp,
    /// Time at which the activation expires or expired (exclusive end).
    pub expires_at: Timestamp,
    /// Time at which its integration ended the activation before it expired.
    pub ended_at: Option<Timestamp>,
    /// Version that was issued last.
    pub version: i64,
    /// ID of the integration.
    pub integration: IntegrationId,
    /// Name of the integration. `None` if it was deleted, and from stores, which do not read it.
    pub name: Option<IntegrationName>,
    /// Form in which the credential was issued last.
    pub form: VendedForm,
    /// Purpose that the integration stated.
    pub purpose: Option<Purpose>,
    /// Subject of the workload, if it authenticated with an identity token.
    pub workload: Option<String>,
}

/// A position in the list of a credential's uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsePosition {
    /// Start of the activation.
    pub at: Timestamp,
    /// ID of the activation.
    pub activation: ActivationId,
}

/// Reads a page of the uses of a credential, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListUses {
    /// Organization of the credential.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Position after which the page starts.
    pub after: Option<UsePosition>,
    /// Maximum number of results.
    pub limit: usize,
}

impl Operation for ListUses {
    type Outcome = Vec<CredentialUse>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.organization));
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| true;

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<CredentialUse>, Failure> {
        let rows = unit.rows();
        let read = async { try_join!(rows.current_version(self.organization, self.id), rows.uses(self)) };
        let (version, uses) = unit.authorized(read).await?;
        version.ok_or(Refusal::NotFound)?;
        Ok(uses)
    }
}

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
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0));
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| true;

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let rows = unit.rows();
        let holders = rows.holders(self.0, self.1, unit.now());
        let read = async { try_join!(rows.current_version(self.0, self.1), holders) };
        let (version, holders) = unit.authorized(read).await?;
        Ok((version.ok_or(Refusal::NotFound)?, holders))
    }
}
