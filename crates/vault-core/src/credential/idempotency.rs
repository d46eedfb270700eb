//! Earlier requests with an idempotency key.

use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::{Event, Idempotency};

/// Result of an earlier request with an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierRequest {
    /// Keyed digest of the request.
    pub body: Digest,
    /// ID of the credential.
    pub credential: CredentialId,
    /// Version of the credential.
    pub version: i64,
}

impl EarlierRequest {
    /// Returns the result of a request with the same key: that of the earlier one, whatever has changed since.
    ///
    /// # Errors
    /// [`Refusal::IdempotencyMismatch`] if the requests differ.
    pub fn answer(&self, idempotency: &Idempotency) -> Result<(CredentialId, i64), Refusal> {
        if idempotency.body.all().contains(&self.body) {
            Ok((self.credential, self.version))
        } else {
            Err(Refusal::IdempotencyMismatch)
        }
    }
}

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
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.organization));
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| true;

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let read = async {
            match &self.idempotency {
                Some(idempotency) => unit.rows().earlier_request(self.organization, idempotency).await,
                None => Ok(None),
            }
        };
        let earlier = unit.authorized(read).await?;
        answered(unit, earlier, self.idempotency.as_ref())
    }
}

/// Reads what an earlier request with this key created. Part of an operation that authorizes before it uses the result.
pub(super) async fn earlier_request(
    unit: &Unit<'_>,
    organization: OrganizationId,
    idempotency: Option<&Idempotency>,
) -> Result<Option<EarlierRequest>, Failure> {
    let Some(idempotency) = idempotency else { return Ok(None) };
    Ok(unit.rows().earlier_request(organization, idempotency).await?)
}

/// Returns what an earlier request created, whatever has changed since.
pub(super) fn answered(
    unit: &Unit<'_>,
    earlier: Option<EarlierRequest>,
    idempotency: Option<&Idempotency>,
) -> Result<Option<(CredentialId, i64)>, Failure> {
    let Some((earlier, idempotency)) = earlier.zip(idempotency) else { return Ok(None) };
    let answer = earlier.answer(idempotency)?;
    unit.report(Event::RequestRepeated);
    Ok(Some(answer))
}
