//! Requested checks of credentials.

use super::CHECKER_SECONDS;
use crate::audit::{AuditAction, Subject};
use crate::error::Refusal;
use crate::hourly::HourlyLimit;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;
use futures_util::try_join;

/// Subject of the hourly count of requested checks of an organization.
const SUBJECT: &str = "checks";

/// Queues a check of a version for the activation process. Each credential has at most one queued check: a later request
/// replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCheck {
    /// Organization of the credential.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Version to check. `None` selects the staged version if there is one, otherwise the current version.
    pub version: Option<i64>,
}

impl Operation for RequestCheck {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let Self { organization, id, version } = *self;
        let (rows, now) = (unit.rows(), unit.now());
        let read = async { try_join!(rows.credential_versions(organization, id), rows.checker_seen_at()) };
        let (versions, seen_at) = unit.authorized(read).await?;
        let versions = versions.ok_or(Refusal::NotFound)?;
        let version = version.unwrap_or(versions.staged().unwrap_or(versions.current.version));
        if version != versions.current.version && !versions.is_kept(version, now) {
            return Err(Refusal::NoSuchVersion.into());
        }
        if seen_at.is_none_or(|seen_at: Timestamp| seen_at.plus_seconds(CHECKER_SECONDS) < now) {
            return Err(Refusal::NoChecker.into());
        }
        unit.count_hourly(organization, SUBJECT, HourlyLimit::CHECKS).await?;
        unit.write_and_record(
            rows.request_check(organization, id, version, now),
            Some(organization),
            AuditAction::CredentialCheckRequested,
            Subject::Credential(id).into(),
        )
        .await
    }
}
