//! The end of a restore, which revokes what the restored state would reactivate.

use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::passcode::TimeStep;
use crate::principal::Scope;
use crate::sealed::InstanceRecord;

/// Revokes all sessions, recovery codes and activations, and TOTP secrets and enrolments that are pending confirmation. Marks
/// passcodes up to now as used, for every account. Raises the restore epoch, so that servers that start after this refuse access
/// tokens of another one. Only an operator may run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishRestore {
    /// Epoch that the new one exceeds, in addition to that of the store.
    pub later_epoch: u64,
    /// True to also revoke open enrolment codes, because the restored state does not show which of them were used
    /// or withdrawn since.
    pub ends_invitations: bool,
}

/// Numbers of revoked objects after a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of recovery codes.
    pub recovery_codes: u64,
    /// Number of activations.
    pub activations: u64,
    /// Number of invitations and enrolment codes.
    pub invitations: u64,
}

impl Operation for FinishRestore {
    type Outcome = Settled;
    const ACCESS: Access<Self> = Access::Write(|_| None);
    const IS_LONG: bool = true;

    async fn run(&self, unit: &Unit<'_>) -> Result<Settled, Failure> {
        unit.authorize_for(Scope::All).await?;
        let (rows, now) = (unit.rows(), unit.now());
        if let Some(instance) = rows.lock_instance().await? {
            let least = instance.restore_epoch.max(self.later_epoch).saturating_add(1);
            // Use the time, so that two independent restores of the same state do not get the same epoch.
            let restore_epoch = least.max(u64::try_from(now.as_seconds()).unwrap_or_default());
            rows.set_instance(&InstanceRecord { restore_epoch, ..instance }).await?;
        }
        let settled = rows.revoke_restored(TimeStep::at(now), self.ends_invitations).await?;
        let affected = match self.ends_invitations {
            // Of all organizations: one entry instead of one for each invitation.
            true => Subject::Instance.left(RecordedRow::Invitation, RowState::Gone),
            false => Subject::Instance.into(),
        };
        unit.record(None, AuditAction::DatabaseRestored, affected).await?;
        Ok(settled)
    }
}
