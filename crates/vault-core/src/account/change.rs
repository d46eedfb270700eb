//! Changes of an account by admins and operators.

use super::find::listed;
use super::{Account, AccountRights, AccountSecrets, AccountState, ListedAccount, SetAsides, takes_last_admin};
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::entity::{Index, Opened};
use crate::error::Refusal;
use crate::id::{AccountId, OrganizationId};
use crate::invitation::{INVITATION_SECONDS, Invitation, discard};
use crate::notice::NoticeCode;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::passcode::{PendingSeed, TimeStep};
use crate::principal::Principal;
use crate::role::Role;

/// Change of an account. Each except [`AccountChange::Unlock`] ends all of its sessions and deletes a TOTP secret that
/// is pending confirmation, unless it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountChange {
    /// Disables logins.
    Disable,
    /// Enables logins.
    Enable,
    /// New role.
    Role(Role),
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
/// - [`Refusal::LastAdmin`], except for operators: no active admin would remain according to [`takes_last_admin`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeAccount {
    /// The organization.
    pub organization: OrganizationId,
    /// The account.
    pub account: AccountId,
    /// The change.
    pub change: AccountChange,
}

impl Operation for ChangeAccount {
    /// The account after the change, or before its deletion, with the results of logins before it.
    type Outcome = ListedAccount;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<ListedAccount, Failure> {
        let Self { organization, account, change } = self;
        let (rows, now, place, id) = (unit.rows(), unit.now(), (*organization, *account), *account.as_uuid());
        unit.authorize().await?;
        let before = match unit.principal().reaches(*organization) {
            true => unit.find::<Account>(*organization, id).await?,
            false => None,
        };
        let before = before.ok_or(Refusal::NotFound)?;
        let mut shown = listed(unit, &before).await?;
        let after = self.after(&before, unit);
        if matches!(change, AccountChange::Disable | AccountChange::Enable | AccountChange::Role(_))
            && after.grant == before.grant
        {
            return Ok(shown);
        }
        let others = self.other_admins(unit).await?;
        let remains = (*change != AccountChange::Delete).then_some(&after.grant);
        let active = others.iter().filter(|admin| admin.grant.is_active_admin()).map(|_| 1).sum();
        if *unit.principal() != Principal::Operator && takes_last_admin(&before.grant, remains, active) {
            return Err(Refusal::LastAdmin.into());
        }
        if *change != AccountChange::Unlock {
            rows.end_account_sessions(place).await?;
            unit.remove::<PendingSeed>(*organization, id).await?;
        }
        let affected = Affected::from(Subject::Account(*account));
        let (action, affected) = match change {
            AccountChange::Disable => (AuditAction::AccountDisabled, affected),
            AccountChange::Enable => (AuditAction::AccountEnabled, affected),
            AccountChange::Role(_) => (AuditAction::AccountRoleChanged, affected),
            AccountChange::ReEnrol(code) => {
                let invitation = self.re_enrolment(unit, &after, *code);
                shown.invitation_expires_at = Some(invitation.expires_at);
                unit.remove::<AccountSecrets>(*organization, id).await?;
                rows.reset_passcodes(place, TimeStep::NONE).await?;
                rows.replace_recovery_codes(place, &[]).await?;
                discard(unit, place).await?;
                // Later re-enrolments have higher versions, so that the check finds one that was put back.
                unit.insert_as(*organization, id, before.version() + 1, &invitation).await?;
                rows.reset_buckets(place).await?;
                rows.leave_notice(place, NoticeCode::ReEnrolled, now).await?;
                for admin in &others {
                    rows.leave_notice(admin.place(), NoticeCode::ColleagueReEnrolled(*account), now).await?;
                }
                (AuditAction::AccountReEnrolled, affected)
            }
            AccountChange::Unlock => {
                rows.reset_buckets(place).await?;
                (AuditAction::AccountUnlocked, affected)
            }
            AccountChange::Delete => {
                discard(unit, place).await?;
                unit.remove::<AccountSecrets>(*organization, id).await?;
                unit.remove::<SetAsides>(*organization, id).await?;
                unit.remove::<Account>(*organization, id).await?;
                rows.remove_account(place).await?;
                (AuditAction::AccountDeleted, affected.and(RecordedRow::Invitation, RowState::Gone))
            }
        };
        if after != *before {
            unit.replace(&before, &after).await?;
            shown.grant = after.grant.clone();
        }
        let affected = affected.changing(changes(&before.grant, &after.grant));
        unit.record(Some(*organization), action, affected).await?;
        Ok(shown)
    }
}

impl ChangeAccount {
    /// Returns the account after the change. Unchanged if the change affects only other rows.
    fn after(&self, before: &Account, unit: &Unit<'_>) -> Account {
        let grant = before.grant.clone();
        match self.change {
            AccountChange::Disable => before.with_grant(AccountRights { state: AccountState::Disabled, ..grant }),
            AccountChange::Enable => before.with_grant(AccountRights { state: before.enabled_state(), ..grant }),
            AccountChange::Role(role) => before.with_grant(AccountRights { role, ..grant }),
            AccountChange::ReEnrol(_) => before.without_secrets(unit.now()),
            AccountChange::Unlock | AccountChange::Delete => before.clone(),
        }
    }

    /// Returns the admins other than the account to be changed, whatever their state, if the change depends on them.
    async fn other_admins(&self, unit: &Unit<'_>) -> Result<Vec<Opened<Account>>, Failure> {
        if *unit.principal() == Principal::Operator && !matches!(self.change, AccountChange::ReEnrol(_)) {
            return Ok(Vec::new());
        }
        let mut admins = unit.list::<Account>(Index::Admin, Some(self.organization), None, usize::MAX).await?;
        admins.retain(|admin| admin.grant.account != self.account);
        Ok(admins)
    }

    fn re_enrolment(&self, unit: &Unit<'_>, after: &Account, code: Digest) -> Invitation {
        let (created_at, invited_by) = (unit.now(), unit.principal().account());
        // The state re-enrolling whatever the account's state is, so that it never creates an account.
        let grant = AccountRights { state: AccountState::ReEnrolling, ..after.grant.clone() };
        let expires_at = created_at.plus_seconds(INVITATION_SECONDS);
        Invitation { grant, invited_by, code, created_at, expires_at }
    }
}

pub(crate) fn changes(from: &AccountRights, to: &AccountRights) -> Vec<AuditChange> {
    let role = |role: &Role| Some(role.as_str().to_owned());
    let state = |state: &AccountState| Some(state.as_str().to_owned());
    let role = AuditChange::between(ChangedField::Role, &from.role, &to.role, role);
    role.into_iter().chain(AuditChange::between(ChangedField::State, &from.state, &to.state, state)).collect()
}
