//! Confirmation of a new TOTP secret of the principal's own account.

use super::{Account, AccountSecrets, put};
use crate::audit::{AuditAction, Subject};
use crate::id::SecretsId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::passcode::{PendingSeed, TimeStep, may_be_confirmed};
use crate::principal::{Denial, SessionPrincipal};
use futures_util::try_join;

/// Counts a code for the pending TOTP secret of the principal before it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReserveConfirmation(pub SessionPrincipal);

impl Operation for ReserveConfirmation {
    /// The secret. `None` if none is pending that [`may_be_confirmed`].
    type Outcome = Option<PendingSeed>;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.0.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<PendingSeed>, Failure> {
        let pending = unit.find::<PendingSeed>(self.0.organization, *self.0.account.as_uuid());
        let (pending, ()) = try_join!(pending, unit.authorize())?;
        let is_open = |pending: &PendingSeed| may_be_confirmed(pending.expires_at, pending.tried, unit.now());
        let Some(pending) = pending.filter(|pending| is_open(pending)) else { return Ok(None) };
        let counted = PendingSeed { tried: pending.tried + 1, ..PendingSeed::clone(&pending) };
        unit.replace(&pending, &counted).await?;
        unit.commit_without_entry();
        Ok(Some(counted))
    }
}

/// Replaces the TOTP secret of the principal's account with the confirmed one, resets wrong passcodes, revokes all other
/// sessions and sets the time of enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmPasscode {
    /// The principal, a session of the account.
    pub principal: SessionPrincipal,
    /// ID of the reserved secret, which must still be pending.
    pub pending: SecretsId,
    /// Time step whose code confirmed it. It is marked as used.
    pub step: TimeStep,
}

impl Operation for ConfirmPasscode {
    /// `false` if this secret is no longer pending. Nothing is changed then.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.principal.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let Self { principal, pending, step } = self;
        let place @ (organization, account) = (principal.organization, principal.account);
        let id = *account.as_uuid();
        let (found, current, secrets, ()) = try_join!(
            unit.find::<PendingSeed>(organization, id),
            unit.find::<Account>(organization, id),
            unit.find::<AccountSecrets>(organization, id),
            unit.authorize(),
        )?;
        let current = current.ok_or(Denial::AccountChanged)?;
        let found = found.filter(|found| found.id == *pending && unit.now() < found.expires_at);
        let secrets = secrets.filter(|secrets| current.secrets == Some(secrets.id));
        let (Some(found), Some(secrets)) = (found, secrets) else { return Ok(false) };
        let (password, seed) = (secrets.password.clone(), found.seed.clone());
        put(unit, place, &AccountSecrets { id: found.id, password, seed }).await?;
        unit.replace(&current, &current.with_passcode(found.id, unit.now()).keeping(principal.session)).await?;
        unit.rows().reset_passcodes(place, *step).await?;
        unit.remove::<PendingSeed>(organization, id).await?;
        unit.rows().end_other_sessions(place, principal.session).await?;
        let subject = Subject::Account(account).into();
        unit.record(Some(organization), AuditAction::AccountPasscodeChanged, subject).await?;
        Ok(true)
    }
}
