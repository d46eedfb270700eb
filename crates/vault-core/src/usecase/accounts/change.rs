//! Changes of an account: state, role, lockouts, re-enrolment and deletion.

use super::{AccountRef, Accounts};
use crate::account::{Account, AccountChange, AccountRights, AccountState, ChangeAccount, FoundAccount, ListedAccount};
use crate::enrolment::EnrolmentCode;
use crate::error::{Error, Refusal};
use crate::principal::Principal;
use crate::role::{Action, Role};
use crate::time::Timestamp;

/// Command for an account. Each except [`AccountCommand::Unlock`] ends its sessions, unless it changes nothing.
pub enum AccountCommand {
    /// Disables logins.
    Disable,
    /// Enables logins.
    Enable,
    /// Sets the role.
    SetRole(Role),
    /// Deletes password, TOTP secret and recovery codes, so that the user must enrol again, and clears lockouts and
    /// locked buckets. Role and state are unchanged. A repeated command replaces the enrolment code. Refused for the
    /// caller's own account, whose secrets its user replaces.
    ReEnrol,
    /// Clears lockouts and locked buckets.
    Unlock,
    /// Deletes the account.
    Delete,
}

/// A changed account, with the enrolment code for its user, if any.
pub struct ChangedAccount {
    /// The account or invitation after the change, or before its deletion. The results of logins are from before
    /// the change.
    pub account: ListedAccount,
    /// Enrolment code for re-enrolment with its expiry, which is shown only once.
    pub enrolment: Option<(EnrolmentCode, Timestamp)>,
}

impl Accounts {
    /// Runs `command` on an account or an invitation. For an invitation, only the role can be changed, or the
    /// invitation deleted.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`], [`Refusal::SeveralInvitations`] or [`Refusal::OnlyInvited`]: the account cannot be
    ///   found or has not been accepted.
    /// - [`Refusal::OwnAccount`]: re-enrolment of the caller's own account.
    /// - [`Refusal::LastAdmin`], never for an operator: no active admin would remain.
    /// - [`Refusal::Damaged`] or [`Refusal::Contended`]: the row is damaged or was changed concurrently.
    pub async fn change(
        &self,
        principal: &Principal,
        account: AccountRef<'_>,
        command: AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        principal.administers(Action::ManageAccounts)?;
        for _ in self.environment.attempts() {
            let changed = match self.find(principal, account).await? {
                FoundAccount::Account(account) => self.change_account(principal, *account, &command).await,
                FoundAccount::Invitation(invited) => self.change_invitation(principal, &invited, &command).await,
                FoundAccount::Invitations(number) => return Err(Refusal::SeveralInvitations(number).into()),
            };
            match changed {
                Err(Error::Refused(Refusal::Contended)) => {}
                changed => return changed,
            }
        }
        Err(Refusal::Contended.into())
    }

    async fn change_account(
        &self,
        principal: &Principal,
        current: Account,
        command: &AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        let account = current.signed.grant.account;
        if matches!(command, AccountCommand::ReEnrol) && principal.account() == Some(account) {
            return Err(Refusal::OwnAccount.into());
        }
        self.digester.load_keys(&[current.digest.key]).await?;
        // Never re-sign an invalid row: that would legitimize a row planted through SQL.
        if !current.mac_is_valid(&*self.digester) {
            self.report_damage("accounts", account);
            return Err(Refusal::Damaged { table: "accounts", id: account.to_string() }.into());
        }
        let grant = &current.signed.grant;
        let regranted = |grant| (AccountChange::Grant, current.signed.with_grant(grant), None);
        let untouched = |change| (change, current.signed.clone(), None);
        let (change, after, code) = match command {
            AccountCommand::Disable => regranted(AccountRights { state: AccountState::Disabled, ..grant.clone() }),
            AccountCommand::Enable => {
                regranted(AccountRights { state: current.signed.enabled_state(), ..grant.clone() })
            }
            AccountCommand::SetRole(role) => regranted(AccountRights { role: *role, ..grant.clone() }),
            AccountCommand::ReEnrol => {
                let code = EnrolmentCode::generate(&*self.entropy)?;
                let change = AccountChange::ReEnrol(code.digest(&*self.digester));
                (change, current.signed.without_secrets(), Some(code))
            }
            AccountCommand::Unlock => untouched(AccountChange::Unlock),
            AccountCommand::Delete => untouched(AccountChange::Delete),
        };
        let mut listed = ListedAccount { grant: after.grant.clone(), ..current.listed() };
        if change == AccountChange::Grant && after.grant == current.signed.grant {
            return Ok(ChangedAccount { account: listed, enrolment: None });
        }
        let change = ChangeAccount { version: current.signed.version, after, change };
        let enrols_until = self.operations.run(&self.environment, principal, change).await?;
        listed.invitation_expires_at = enrols_until.or(listed.invitation_expires_at);
        Ok(ChangedAccount { account: listed, enrolment: code.zip(enrols_until) })
    }
}
