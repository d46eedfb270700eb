//! The restore epoch, and what a restore ends. It belongs to no tenant: every row of its kinds goes.

use super::super::backend::{Connection, RunQuery, Store, for_update};
use super::super::{Decided, Decision, Verdict, decide};
use crate::failure::Failure;
use crate::schema::{
    account_logins, activations, enrolment_codes, enrolment_drafts, instance, invitations, invited_addresses,
    pending_seeds, recovery_codes, sessions,
};
use crate::update::update;
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::Command;
use vault_core::port::{RestoreRepository, SettleRestore, Settled, StoreError};
use vault_core::principal::{Denial, Principal};

#[async_trait]
impl RestoreRepository for Store {
    async fn restore_epoch(&self) -> Result<u64, StoreError> {
        self.read((), |connection, ()| Box::pin(epoch(connection))).await
    }

    async fn settle_restore(&self, command: Command<SettleRestore>) -> Result<Option<Settled>, StoreError> {
        self.write_patiently(command, |connection, command| Box::pin(decide(connection, command))).await
    }
}

async fn epoch(connection: &mut Connection) -> Result<u64, Failure> {
    let epoch: Option<i64> = instance::table.select(instance::restore_epoch).get_result(connection).await.optional()?;
    decode(epoch)
}

fn decode(epoch: Option<i64>) -> Result<u64, Failure> {
    u64::try_from(epoch.unwrap_or_default()).map_err(|_| Failure::damaged("instance", "1".to_owned(), "restore_epoch"))
}

impl Decision for SettleRestore {
    /// The epoch before.
    type Held = u64;
    type Outcome = Option<Settled>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<u64, Failure> {
        if command.principal != Principal::Operator {
            return Err(Denial::InsufficientRole.into());
        }
        let epoch: Option<i64> =
            for_update!(instance::table.select(instance::restore_epoch)).get_result(connection).await.optional()?;
        decode(epoch)
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, before: u64) -> Decided<Option<Settled>> {
        let SettleRestore { epoch, step, ends_invitations } = command.act;
        let stored = i64::try_from(epoch).ok().filter(|_| epoch > before);
        let Some(stored) = stored else { return Ok(Verdict::Refused(None)) };
        update(instance::table).set(instance::restore_epoch.eq(stored)).execute(connection).await?;
        update(account_logins::table.filter(account_logins::last_step.lt(step.0)))
            .set(account_logins::last_step.eq(step.0))
            .execute(connection)
            .await?;
        diesel::delete(pending_seeds::table).execute(connection).await?;
        diesel::delete(enrolment_drafts::table).execute(connection).await?;
        let mut settled = Settled {
            sessions: count(diesel::delete(sessions::table).execute(connection).await?),
            recovery_codes: count(diesel::delete(recovery_codes::table).execute(connection).await?),
            activations: count(diesel::delete(activations::table).execute(connection).await?),
            invitations: 0,
        };
        if ends_invitations {
            diesel::delete(enrolment_codes::table).execute(connection).await?;
            diesel::delete(invited_addresses::table).execute(connection).await?;
            settled.invitations = count(diesel::delete(invitations::table).execute(connection).await?);
        }
        Ok(Verdict::Done(Some(settled)))
    }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
