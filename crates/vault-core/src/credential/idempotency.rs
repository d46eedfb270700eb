//! Earlier requests with an idempotency key.

use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::Idempotency;

/// Returns the credential and version that an earlier request with this idempotency key created, or `None` if the key is
/// unused. Without a key, only authorizes the principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindRequest {
    /// Organization of the principal.
    pub organization: OrganizationId,
    /// The key, with the request.
    pub idempotency: Option<Idempotency>,
}

impl Operation for FindRequest {
    type Outcome = Option<(CredentialId, i64)>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    fn is_one_exchange(&self) -> bool {
        true
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let Some(idempotency) = &self.idempotency else {
            unit.authorize().await?;
            return Ok(None);
        };
        let earlier = unit.authorized(unit.rows().earlier_request(self.organization, idempotency)).await?;
        Ok(earlier.map(|earlier| earlier.answer(idempotency)).transpose()?)
    }
}
