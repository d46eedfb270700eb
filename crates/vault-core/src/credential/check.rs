//! Periodic and requested checks of credentials: which are due, and their results.

use super::LastCheck;
use crate::activation::FetchedCredential;
use crate::audit::{AuditAction, Subject};
use crate::entity::Opened;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::organization::Organization;
use crate::time::Timestamp;
use futures_util::try_join;

/// Time for which an activation process that claimed checks counts as present, in seconds.
pub const CHECKER_SECONDS: i64 = 60;
/// Time after which a claimed check without a result is claimed again, in seconds.
pub const CHECK_AGAIN_SECONDS: i64 = 60;

/// Claims checks that are due: first the requested ones, then those of the periodic round. Records that an activation process
/// is present. Skips organizations that are not active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimChecks {
    /// Maximum number of requested checks.
    pub most: usize,
    /// Maximum number of checks of the periodic round, and the minimum time between the starts of two rounds in
    /// seconds. `None` claims only requested checks.
    pub turn: Option<(usize, i64)>,
}

/// Progress of a round of periodic checks over all credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckRound {
    /// Start of the round. `None` before the first round.
    pub began_at: Option<Timestamp>,
    /// Last credential that was claimed, ordered by organization and ID. `None` if the round is complete.
    pub after: Option<(OrganizationId, CredentialId)>,
}

impl CheckRound {
    /// Returns the round to continue at `now`, or `None` if the next one is not due yet.
    pub fn due(self, every_seconds: i64, now: Timestamp) -> Option<Self> {
        if self.after.is_some() {
            return Some(self);
        }
        let due = self.began_at.is_none_or(|began| began.plus_seconds(every_seconds) <= now);
        due.then_some(Self { began_at: Some(now), after: None })
    }

    /// Returns the round after `taken` were claimed, with at most `most` per call.
    #[must_use]
    pub fn past(self, taken: &[VersionKey], most: usize) -> Self {
        let last = taken.last().filter(|_| taken.len() >= most);
        Self { after: last.map(|last| (last.organization, last.id)), ..self }
    }
}

/// Key of a version of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionKey {
    /// The organization.
    pub organization: OrganizationId,
    /// The credential.
    pub id: CredentialId,
    /// The version.
    pub version: i64,
}

/// A check that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCheck {
    /// The organization.
    pub organization: OrganizationId,
    /// Credential with the version to check.
    pub credential: FetchedCredential,
    /// Result of the previous check of this version.
    pub before: Option<LastCheck>,
}

impl Operation for ClaimChecks {
    /// Each check with the organization, whose keys open the credential.
    type Outcome = Vec<(DueCheck, Organization)>;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let Self { most, turn } = *self;
        let (rows, now) = (unit.rows(), unit.now());
        unit.commit_without_entry();
        let (seen_at, before) = rows.lock_check_round(now).await?;
        let mut round = before;
        let mut due = rows.claim_requested_checks(now, most).await?;
        if let Some((most, every)) = turn
            && let Some(current) = round.due(every, now)
        {
            let turn = rows.credentials_after(current.after, most).await?;
            round = current.past(&turn, most);
            due.extend(turn);
        }
        // A process that has nothing to do writes now and then, and not each time.
        let seen_lately = seen_at.plus_seconds(CHECKER_SECONDS / 3) > now;
        if due.is_empty() && round == before && seen_lately {
            return Ok(Vec::new());
        }
        rows.set_check_round(now, round).await?;
        let mut checks = Vec::with_capacity(due.len());
        for key in due {
            // The credentials of a deleted organization are removed gradually.
            let (check, owner) = (rows.due_check(key).await?, unit.organization(key.organization).await?);
            checks.extend(check.zip(owner.map(Opened::into_value)));
        }
        Ok(checks)
    }
}

/// Stores the result of a check if the credential still has that version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordCheck {
    /// The version.
    pub key: VersionKey,
    /// Result of the check.
    pub check: LastCheck,
    /// How the audit log names the change of state, if the state changed.
    pub changed: Option<AuditAction>,
}

impl Operation for RecordCheck {
    /// `false` if the credential no longer has this version.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.key.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let Self { key, check, changed } = *self;
        let rows = unit.rows();
        let ((), is_recorded) = try_join!(rows.remove_check_request(key), rows.set_check(key, check))?;
        unit.commit_without_entry();
        if let Some(action) = changed.filter(|_| is_recorded) {
            unit.record_by_system(Some(key.organization), action, Subject::Credential(key.id).into()).await?;
        }
        Ok(is_recorded)
    }
}

/// Records the minute of the last activation of credentials, unless a later one is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordActivated {
    /// The organization.
    pub organization: OrganizationId,
    /// The credentials.
    pub credentials: Vec<CredentialId>,
    /// Time of the activation, truncated to the minute.
    pub minute: Timestamp,
}

impl Operation for RecordActivated {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let mut credentials = self.credentials.clone();
        credentials.sort_unstable(); // the order in which others lock them
        unit.rows().set_activated(self.organization, &credentials, self.minute).await?;
        unit.commit_without_entry();
        Ok(())
    }
}
