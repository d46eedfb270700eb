//! Changes of an account: state, role, lockouts, re-enrolment and deletion.

use super::{AccountRef, Accounts};
use crate::account::{Account, AccountRights, AccountState, ListedAccount, SignedAccount};
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, RecordedRow, RowState, Subject};
use crate::enrolment::EnrolmentCode;
use crate::error::{Error, Refusal};
use crate::invitation::{INVITATION_SECONDS, Invitation, StoredInvitation};
use crate::port::{AccountChange, ChangeAccount, Event, FoundAccount};
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

/// A change based on one version of a row.
struct Decided {
    change: AccountChange,
    after: SignedAccount,
    action: AuditAction,
    enrolment: Option<(EnrolmentCode, Timestamp)>,
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
                FoundAccount::Invitation(stored) => self.change_invitation(principal, *stored, &command).await,
                FoundAccount::Invitations(number) => return Err(Refusal::SeveralInvitations(number).into()),
            };
            match changed {
                Err(Error::Refused(Refusal::Contended)) => self.digester.reload_keys().await?,
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
        let (organization, account) = (current.signed.grant.organization, current.signed.grant.account);
        if matches!(command, AccountCommand::ReEnrol) && principal.account() == Some(account) {
            return Err(Refusal::OwnAccount.into());
        }
        self.digester.load_keys(&[current.digest.key]).await?;
        // Never re-sign an invalid row: that would legitimize a row planted through SQL.
        if !current.mac_is_valid(&*self.digester) {
            self.report_damage("accounts", account);
            return Err(Refusal::Damaged { table: "accounts", id: account.to_string() }.into());
        }
        let Decided { change, after, action, enrolment } = self.decide(principal, &current.signed, command)?;
        let mut listed = ListedAccount { grant: after.grant.clone(), ..current.listed() };
        listed.invitation_expires_at =
            enrolment.as_ref().map(|(_, expires_at)| *expires_at).or(listed.invitation_expires_at);
        if matches!(change, AccountChange::Grant) && after.grant == current.signed.grant {
            return Ok(ChangedAccount { account: listed, enrolment });
        }
        let changes = changes(&current.signed.grant, &after.grant);
        let payload =
            ChangeAccount { version: current.signed.version, digest: after.digest(&*self.digester), after, change };
        let affected = self.left_by(&payload).changing(changes);
        let command = self.environment.command(principal, Some(organization), action, affected, payload);
        let recorded = Event::recorded(&command.audit);
        self.store.change_account(command).await?;
        self.environment.emit(recorded);
        Ok(ChangedAccount { account: listed, enrolment })
    }

    /// Returns the account with the states of its rows after the change.
    fn left_by(&self, payload: &ChangeAccount) -> Affected {
        let account = Subject::Account(payload.after.grant.account);
        let after = || payload.after.state(&*self.digester);
        match &payload.change {
            AccountChange::Grant => account.left(RecordedRow::Account, after()),
            AccountChange::ReEnrol { invitation, .. } => account
                .left(RecordedRow::Account, after())
                .and(RecordedRow::Invitation, invitation.state(&*self.digester)),
            AccountChange::Unlock => account.into(),
            AccountChange::Delete => {
                account.left(RecordedRow::Account, RowState::Gone).and(RecordedRow::Invitation, RowState::Gone)
            }
        }
    }

    fn decide(
        &self,
        principal: &Principal,
        current: &SignedAccount,
        command: &AccountCommand,
    ) -> Result<Decided, Error> {
        let grant = &current.grant;
        let regranted = |grant: AccountRights, action| Decided {
            change: AccountChange::Grant,
            after: current.with_grant(grant),
            action,
            enrolment: None,
        };
        let untouched = |change, action| Decided { change, after: current.clone(), action, enrolment: None };
        Ok(match command {
            AccountCommand::Disable => regranted(
                AccountRights { state: AccountState::Disabled, ..grant.clone() },
                AuditAction::AccountDisabled,
            ),
            AccountCommand::Enable => regranted(
                AccountRights { state: current.enabled_state(), ..grant.clone() },
                AuditAction::AccountEnabled,
            ),
            AccountCommand::SetRole(role) => {
                regranted(AccountRights { role: *role, ..grant.clone() }, AuditAction::AccountRoleChanged)
            }
            AccountCommand::ReEnrol => self.decide_re_enrolment(principal, current)?,
            AccountCommand::Unlock => untouched(AccountChange::Unlock, AuditAction::AccountUnlocked),
            AccountCommand::Delete => untouched(AccountChange::Delete, AuditAction::AccountDeleted),
        })
    }

    fn decide_re_enrolment(&self, principal: &Principal, current: &SignedAccount) -> Result<Decided, Error> {
        let code = EnrolmentCode::generate(&*self.entropy)?;
        let created_at = self.environment.now();
        let expires_at = created_at.plus_seconds(INVITATION_SECONDS);
        // Use the state re-enrolling whatever the account's state is, so that the MAC never matches an ordinary
        // invitation.
        let grant = AccountRights { state: AccountState::ReEnrolling, ..current.grant.clone() };
        let (invited_by, code_digest) = (principal.account(), code.digest(&*self.digester));
        let invitation = Invitation { grant, invited_by, code: code_digest, created_at, expires_at };
        let invitation = StoredInvitation::sign(invitation, StoredInvitation::FIRST_VERSION, &*self.digester);
        Ok(Decided {
            change: AccountChange::ReEnrol { invitation: Box::new(invitation) },
            after: current.without_secrets(),
            action: AuditAction::AccountReEnrolled,
            enrolment: Some((code, expires_at)),
        })
    }
}

/// Returns the changed rights.
pub(super) fn changes(from: &AccountRights, to: &AccountRights) -> Vec<AuditChange> {
    let role = |role: &Role| Some(role.as_str().to_owned());
    let state = |state: &AccountState| Some(state.as_str().to_owned());
    let role = AuditChange::between(ChangedField::Role, &from.role, &to.role, role);
    role.into_iter().chain(AuditChange::between(ChangedField::State, &from.state, &to.state, state)).collect()
}
