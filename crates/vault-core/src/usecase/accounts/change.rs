//! Changes of an account: state, role, lockouts, re-enrolment and deletion.

use super::{AccountRef, Accounts};
use crate::account::{AccountChange, AccountRights, ChangeAccount, FoundAccount, ListedAccount};
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
    /// - [`Refusal::Damaged`]: the account does not open.
    pub async fn change(
        &self,
        principal: &Principal,
        account: AccountRef<'_>,
        command: AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        principal.administers(Action::ManageAccounts)?;
        match self.find(principal, account).await? {
            FoundAccount::Account(account) => self.change_account(principal, &account.grant, &command).await,
            FoundAccount::Invitation(invited) => self.change_invitation(principal, &invited, &command).await,
            FoundAccount::Invitations(number) => Err(Refusal::SeveralInvitations(number).into()),
        }
    }

    async fn change_account(
        &self,
        principal: &Principal,
        &AccountRights { organization, account, .. }: &AccountRights,
        command: &AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        if matches!(command, AccountCommand::ReEnrol) && principal.account() == Some(account) {
            return Err(Refusal::OwnAccount.into());
        }
        let mut code = None;
        let change = match command {
            AccountCommand::Disable => AccountChange::Disable,
            AccountCommand::Enable => AccountChange::Enable,
            AccountCommand::SetRole(role) => AccountChange::Role(*role),
            AccountCommand::ReEnrol => {
                let code = code.insert(EnrolmentCode::generate(&*self.entropy)?);
                AccountChange::ReEnrol(code.digest(&*self.digester))
            }
            AccountCommand::Unlock => AccountChange::Unlock,
            AccountCommand::Delete => AccountChange::Delete,
        };
        let change = ChangeAccount { organization, account, change };
        let account = self.operations.run(&self.environment, principal, change).await?;
        let enrolment = code.zip(account.invitation_expires_at);
        Ok(ChangedAccount { account, enrolment })
    }
}
