//! Steps after a restore, which revoke what the restored state would reactivate.

use super::Operator;
use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::error::Error;
use crate::passcode::TimeStep;
use crate::port::{Event, FinishRestore, Settled};
use crate::principal::Principal;

impl Operator {
    /// Revokes all sessions, recovery codes, activations and unconfirmed TOTP secrets, and marks all passcodes up to
    /// now as used. Raises the restore epoch, also above `later_epoch`, so that servers that start after this refuse
    /// older access tokens. With `ends_invitations`, also revokes open enrolment codes, because the restored state does
    /// not show which of them were used or withdrawn since.
    ///
    /// # Errors
    /// The store failed.
    pub async fn finish_restore(&self, later_epoch: u64, ends_invitations: bool) -> Result<Settled, Error> {
        loop {
            let now = self.environment.now();
            let least = self.store.restore_epoch().await?.max(later_epoch).saturating_add(1);
            // Use the time, so that two independent restores of the same state do not get the same epoch.
            let epoch = least.max(u64::try_from(now.as_seconds()).unwrap_or_default());
            let payload = FinishRestore { epoch, step: TimeStep::at(now), ends_invitations };
            let (principal, action) = (Principal::Operator, AuditAction::DatabaseRestored);
            let affected = match ends_invitations {
                // Of all organizations: one entry instead of one for each invitation.
                true => Subject::Instance.left(RecordedRow::Invitation, RowState::Gone),
                false => Subject::Instance.into(),
            };
            let command = self.environment.command(&principal, None, action, affected, payload);
            let recorded = Event::recorded(&command.audit);
            if let Some(settled) = self.store.finish_restore(command).await? {
                self.environment.emit(recorded);
                return Ok(settled);
            }
        }
    }
}
