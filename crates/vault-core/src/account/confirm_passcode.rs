//! Confirmation of a new TOTP secret of the principal's own account.

use super::{SignedAccount, sign_account};
use crate::audit::{AuditAction, RecordedRow, Subject};
use crate::digest::RowMac;
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::passcode::{PendingSeed, TimeStep, may_be_confirmed};
use crate::principal::{Denial, SessionPrincipal};
use futures_util::try_join;

/// A TOTP secret that is pending confirmation, with the current state of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingSeed {
    /// The TOTP secret.
    pub pending: PendingSeed,
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// MAC of the row.
    pub digest: RowMac,
}

/// Counts a code for the pending TOTP secret of the principal before it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReserveConfirmation(pub SessionPrincipal);

impl Operation for ReserveConfirmation {
    /// The secret. `None` if none is pending that [`may_be_confirmed`].
    type Outcome = Option<WaitingSeed>;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.0.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<WaitingSeed>, Failure> {
        let (rows, place) = (unit.rows(), (self.0.organization, self.0.account));
        let reading = async { try_join!(rows.account(place), rows.pending_seed(place)) };
        let (account, pending) = unit.authorized(reading).await?;
        let (signed, digest) = account.ok_or(Denial::AccountChanged)?;
        let open = pending.filter(|(pending, tried)| may_be_confirmed(pending.expires_at, *tried, unit.now()));
        let Some((pending, _)) = open else { return Ok(None) };
        rows.count_confirmation(place).await?;
        unit.commit_without_entry();
        Ok(Some(WaitingSeed { pending, signed, digest }))
    }
}

/// Replaces the TOTP secret of the principal's account with the confirmed one, resets wrong passcodes, revokes all other
/// sessions and sets the time of enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmPasscode {
    /// The principal, a session of the account.
    pub principal: SessionPrincipal,
    /// The reserved secret. Both MACs verified. It must be unchanged.
    pub waiting: WaitingSeed,
    /// Time step whose code confirmed it. It is marked as used.
    pub step: TimeStep,
}

impl Operation for ConfirmPasscode {
    /// `false` if this secret is no longer pending or the row has changed. Nothing is changed then.
    type Outcome = bool;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.principal.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let Self { principal, waiting, step } = self;
        let (rows, place) = (unit.rows(), (principal.organization, principal.account));
        if (waiting.signed.grant.organization, waiting.signed.grant.account) != place {
            return Err(Denial::AccountChanged.into());
        }
        let reading = async { try_join!(rows.account(place), rows.pending_seed(place)) };
        let (account, pending) = unit.authorized(reading).await?;
        let waits =
            |pending: &PendingSeed| pending.seed.id == waiting.pending.seed.id && unit.now() < pending.expires_at;
        let pending = pending.map(|(pending, _)| pending).filter(waits);
        let Some(PendingSeed { seed, .. }) =
            pending.filter(|_| account.is_some_and(|(signed, _)| signed == waiting.signed))
        else {
            return Ok(false);
        };
        rows.enrol_seed(place, &seed, *step, unit.now()).await?;
        let state = sign_account(unit, &waiting.signed.with_seed(seed.id).keeping(principal.session)).await?;
        rows.remove_pending_seed(place).await?;
        rows.end_other_sessions(place, principal.session).await?;
        let affected = Subject::Account(principal.account).left(RecordedRow::Account, state);
        unit.record(Some(principal.organization), AuditAction::AccountPasscodeChanged, affected).await?;
        Ok(true)
    }
}
