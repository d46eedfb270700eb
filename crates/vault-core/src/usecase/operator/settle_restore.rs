//! After a restore: end what the earlier state would bring back.

use super::Operator;
use crate::audit::{AuditAction, Subject};
use crate::error::Error;
use crate::passcode::TimeStep;
use crate::port::{Event, SettleRestore, Settled};
use crate::principal::Principal;

impl Operator {
    /// Ends every session, recovery code, activation and unconfirmed seed; spends every passcode up to now; and raises the
    /// restore epoch, above `later_epoch` too, so that servers that start after this refuse older access tokens. Open
    /// enrolment codes end too if it `ends_invitations`, because nobody knows which of them were used or withdrawn since.
    ///
    /// # Errors
    /// The store failed.
    pub async fn settle_restore(&self, later_epoch: u64, ends_invitations: bool) -> Result<Settled, Error> {
        loop {
            let now = self.environment.now();
            let least = self.store.restore_epoch().await?.max(later_epoch).saturating_add(1);
            // A time: two restores of one state, each unaware of the other, do not get the same epoch.
            let epoch = least.max(u64::try_from(now.as_seconds()).unwrap_or_default());
            let act = SettleRestore { epoch, step: TimeStep::at(now), ends_invitations };
            let (principal, action) = (Principal::Operator, AuditAction::DatabaseRestored);
            let command = self.environment.command(&principal, None, action, Subject::Instance, act);
            let recorded = Event::recorded(&command.audit);
            if let Some(settled) = self.store.settle_restore(command).await? {
                self.environment.emit(recorded);
                return Ok(settled);
            }
        }
    }
}
