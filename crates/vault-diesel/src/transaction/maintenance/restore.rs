//! The restore epoch, and what a restore of an earlier state deletes: rows of all organizations.

use super::super::audit::AuditRecorder;
use super::super::{Read, Transaction};
use crate::db::{Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{account_logins, activations, entities, global_lookups, instance, recovery_codes, sessions};
use diesel::{ExpressionMethods as _, QueryDsl as _, delete, update};
use vault_core::Command;
use vault_core::entity::{Index, Kind};
use vault_core::port::{FinishRestore, Settled};
use vault_core::principal::{Denial, Principal};

/// The restore epoch.
pub(crate) struct ReadRestoreEpoch;

impl Read for ReadRestoreEpoch {
    type Outcome = u64;

    async fn read(&self, tx: &Tx<'_>) -> Result<u64, Failure> {
        decode(tx.first(instance::table.select(instance::restore_epoch)).await?)
    }
}

fn decode(epoch: Option<i64>) -> Result<u64, Failure> {
    u64::try_from(epoch.unwrap_or_default()).map_err(|_| Failure::damaged("instance", "1".to_owned(), "restore_epoch"))
}

impl Transaction for Command<FinishRestore> {
    /// `None` if the epoch is not after the current one.
    type Outcome = Option<Settled>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<Settled>, Failure> {
        if self.principal != Principal::Operator {
            return Err(Denial::InsufficientRole.into());
        }
        let FinishRestore { epoch, step, ends_invitations } = self.payload;
        let before = decode(tx.first(locked(instance::table.select(instance::restore_epoch), Update)).await?)?;
        let stored = i64::try_from(epoch).ok().filter(|_| epoch > before);
        let Some(stored) = stored else { return Ok(None) };
        tx.execute(update(instance::table).set(instance::restore_epoch.eq(stored))).await?;
        let earlier = account_logins::table.filter(account_logins::last_step.lt(step.0));
        tx.execute(update(earlier).set(account_logins::last_step.eq(step.0))).await?;
        let unconfirmed = [Kind::PendingSeed, Kind::EnrolmentDraft].map(Kind::as_str);
        tx.execute(delete(entities::table.filter(entities::kind.eq_any(unconfirmed)))).await?;
        let mut settled = Settled {
            sessions: count(tx.execute(delete(sessions::table)).await?),
            recovery_codes: count(tx.execute(delete(recovery_codes::table)).await?),
            activations: count(tx.execute(delete(activations::table)).await?),
            invitations: 0,
        };
        if ends_invitations {
            let leading = global_lookups::name.eq_any(Index::names_of(Kind::Invitation));
            tx.execute(delete(global_lookups::table.filter(leading))).await?;
            let invitations = entities::table.filter(entities::kind.eq(Kind::Invitation.as_str()));
            settled.invitations = count(tx.execute(delete(invitations)).await?);
        }
        audit.record(tx, &self.audit).await?;
        Ok(Some(settled))
    }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
