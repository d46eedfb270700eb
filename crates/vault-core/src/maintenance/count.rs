//! Counts for metrics, which are made periodically instead of with each change.

use crate::credential_counts::{CountedCredentials, ExpiryBounds};
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};

/// Maximum number of credentials that a metric counts with one operation.
pub const COUNT_SLICE: usize = 10_000;

/// Counts credentials of all organizations, ordered by organization and ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountCredentials {
    /// Limits of the expiry groups.
    pub bounds: ExpiryBounds,
    /// Position after which the slice starts.
    pub after: Option<(OrganizationId, CredentialId)>,
    /// Maximum number of credentials.
    pub limit: usize,
}

/// Result of a count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedSlice {
    /// Numbers of credentials. Each credential is in one group.
    pub groups: Vec<CountedCredentials>,
    /// The last counted credential. `None` if none remained.
    pub last: Option<(OrganizationId, CredentialId)>,
}

impl Operation for CountCredentials {
    type Outcome = CountedSlice;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<CountedSlice, Failure> {
        Ok(unit.rows().count_credentials(self).await?)
    }
}

/// Returns the number of uses of the most used active organization key, or 0 if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMostKeyUses;

impl Operation for ReadMostKeyUses {
    type Outcome = i64;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<i64, Failure> {
        Ok(unit.rows().most_key_uses().await?)
    }
}
