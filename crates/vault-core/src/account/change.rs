//! Changes of an account by admins and operators.

use super::{AccountRights, AccountState, SignedAccount, sign_account, takes_last_admin};
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::OrganizationId;
use crate::invitation::{INVITATION_SECONDS, Invitation, discard};
use crate::notice::NoticeCode;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::principal::Principal;
use crate::role::Role;
use crate::time::Timestamp;

/// Change of an account. Each except [`AccountChange::Unlock`] ends all of its sessions and deletes a TOTP secret that
/// is pending confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountChange {
    /// New role or state.
    Grant,
    /// Deletes password, TOTP secret and recovery codes, resets the count of wrong passcodes, and clears lockouts and
    /// locked buckets. The user can enrol again with the code of this digest, which replaces any previous one.
    ReEnrol(Digest),
    /// Clears lockouts and locked buckets.
    Unlock,
    /// Deletes the account with all its rows.
    Delete,
}

/// Changes an account. A session can change only accounts of its organization, and cannot remove the last active admin.
/// In the same transaction, its user and the other admins of its organization get notices of a re-enrolment.
///
/// # Errors
/// - [`Refusal::NotFound`]: the account does not exist, or the principal may not see it.
/// - [`Refusal::Contended`]: the row has another version.
/// - [`Refusal::LastAdmin`], except for operators: no active admin would remain according to [`takes_last_admin`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeAccount {
    /// Version of the row that the change is based on. The MAC of the row verified.
    pub version: i64,
    /// New fields that the row's MAC covers, including the account's ID. Unchanged if the change affects none of them.
    pub after: SignedAccount,
    /// The change.
    pub change: AccountChange,
}

impl Operation for ChangeAccount {
    /// Time until which the user can enrol again.
    type Outcome = Option<Timestamp>;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.after.grant.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<Timestamp>, Failure> {
        let (rows, now, Self { after, change, .. }) = (unit.rows(), unit.now(), self);
        let place @ (organization, account) = (after.grant.organization, after.grant.account);
        unit.authorize().await?;
        if !unit.principal().reaches(organization) {
            return Err(Refusal::NotFound.into());
        }
        let (before, _) = rows.account(place).await?.ok_or(Refusal::NotFound)?;
        if before.version != self.version {
            return Err(Refusal::Contended.into());
        }
        let others = self.other_admins(unit).await?;
        let remains = (*change != AccountChange::Delete).then_some(&after.grant);
        let active = others.iter().filter(|admin| admin.is_active_admin()).map(|_| 1).sum();
        if *unit.principal() != Principal::Operator && takes_last_admin(&before.grant, remains, active) {
            return Err(Refusal::LastAdmin.into());
        }
        if *change != AccountChange::Unlock {
            rows.end_account_sessions(place).await?;
            rows.remove_pending_seed(place).await?;
        }
        let subject = Subject::Account(account);
        let mut until = None;
        let (action, affected): (_, Affected) = match change {
            AccountChange::Grant => {
                let changes = changes(&before.grant, &after.grant);
                let state = sign_account(unit, after).await?;
                (self.action(&before), subject.left(RecordedRow::Account, state).changing(changes))
            }
            AccountChange::ReEnrol(code) => {
                let invitation = self.re_enrolment(unit, *code);
                until = Some(invitation.expires_at);
                rows.erase_secrets(place, now).await?;
                discard(unit, place).await?;
                // Later re-enrolments have higher versions, so that the check finds one that was put back.
                unit.insert_as(organization, *account.as_uuid(), after.version, &invitation).await?;
                rows.reset_buckets(place).await?;
                rows.leave_notice(place, NoticeCode::ReEnrolled, now).await?;
                for admin in &others {
                    let notice = NoticeCode::ColleagueReEnrolled(account);
                    rows.leave_notice((organization, admin.account), notice, now).await?;
                }
                let changes = changes(&before.grant, &after.grant);
                let left = subject.left(RecordedRow::Account, sign_account(unit, after).await?);
                (AuditAction::AccountReEnrolled, left.changing(changes))
            }
            AccountChange::Unlock => {
                rows.reset_buckets(place).await?;
                (AuditAction::AccountUnlocked, subject.into())
            }
            AccountChange::Delete => {
                discard(unit, place).await?;
                rows.remove_account(place).await?;
                let left = subject.left(RecordedRow::Account, RowState::Gone);
                (AuditAction::AccountDeleted, left.and(RecordedRow::Invitation, RowState::Gone))
            }
        };
        unit.record(Some(organization), action, affected).await?;
        Ok(until)
    }
}

impl ChangeAccount {
    /// Returns the admins other than the account to be changed, whatever their state, if the change depends on them.
    async fn other_admins(&self, unit: &Unit<'_>) -> Result<Vec<AccountRights>, Failure> {
        if *unit.principal() == Principal::Operator && !matches!(self.change, AccountChange::ReEnrol(_)) {
            return Ok(Vec::new());
        }
        let AccountRights { organization, account: target, .. } = self.after.grant;
        let mut admins = unit.rows().admins(organization).await?;
        admins.retain(|admin| admin.account != target);
        Ok(admins)
    }

    fn action(&self, before: &SignedAccount) -> AuditAction {
        let (before, after) = (&before.grant, &self.after.grant);
        match after.state {
            _ if before.role != after.role || before.state == after.state => AuditAction::AccountRoleChanged,
            AccountState::Disabled => AuditAction::AccountDisabled,
            _ => AuditAction::AccountEnabled,
        }
    }

    fn re_enrolment(&self, unit: &Unit<'_>, code: Digest) -> Invitation {
        let (created_at, invited_by) = (unit.now(), unit.principal().account());
        // The state re-enrolling whatever the account's state is, so that it never creates an account.
        let grant = AccountRights { state: AccountState::ReEnrolling, ..self.after.grant.clone() };
        let expires_at = created_at.plus_seconds(INVITATION_SECONDS);
        Invitation { grant, invited_by, code, created_at, expires_at }
    }
}

/// Returns the changed rights.
pub(crate) fn changes(from: &AccountRights, to: &AccountRights) -> Vec<AuditChange> {
    let role = |role: &Role| Some(role.as_str().to_owned());
    let state = |state: &AccountState| Some(state.as_str().to_owned());
    let role = AuditChange::between(ChangedField::Role, &from.role, &to.role, role);
    role.into_iter().chain(AuditChange::between(ChangedField::State, &from.state, &to.state, state)).collect()
}
