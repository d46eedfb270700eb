//! Changes of an account: state, role, password, passcode, lockouts, re-enrolment and deletion.

use super::{AccountRef, Accounts};
use crate::account::{Account, AccountRights, AccountState, ListedAccount, SignedAccount};
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, RecordedRow, RowState, Subject};
use crate::enrolment::EnrolmentCode;
use crate::error::{Error, Refusal};
use crate::hash_slots::Requester;
use crate::invitation::{INVITATION_SECONDS, Invitation, StoredInvitation};
use crate::passcode::{PasscodeSecret, RecoveryCode};
use crate::password::check_new_password;
use crate::port::{AccountChange, ChangeAccount, Event, FoundAccount};
use crate::principal::{Denial, Principal};
use crate::role::{Action, Role};
use crate::time::Timestamp;
use secrecy::SecretString;

/// Command for an account. Each except [`AccountCommand::Unlock`] ends its sessions, unless it changes nothing.
pub enum AccountCommand {
    /// Disables logins.
    Disable,
    /// Enables logins.
    Enable,
    /// Sets the role.
    SetRole(Role),
    /// Sets the password. Clears lockouts and locked buckets.
    SetPassword(SecretString),
    /// Replaces the TOTP secret and recovery codes. Clears lockouts and locked buckets.
    ResetPasscode,
    /// Deletes password, TOTP secret and recovery codes, so that the user must enrol again, and clears lockouts and
    /// locked buckets. Role and state are unchanged. A repeated command replaces the enrolment code. Refused for the
    /// caller's own account, whose secrets its user replaces.
    ReEnrol,
    /// Clears lockouts and locked buckets.
    Unlock,
    /// Deletes the account.
    Delete,
}

impl AccountCommand {
    /// Returns whether admins of the organization may run the command, in addition to operators. Only its user and
    /// operators may set or learn the secrets of an account.
    pub const fn is_for_admins(&self) -> bool {
        match self {
            Self::Disable | Self::Enable | Self::SetRole(_) | Self::Delete | Self::ReEnrol | Self::Unlock => true,
            Self::SetPassword(_) | Self::ResetPasscode => false,
        }
    }
}

/// A changed account, with the new secrets for its user, if any.
pub struct ChangedAccount {
    /// The account or invitation after the change, or before its deletion. The results of logins are from before
    /// the change.
    pub account: ListedAccount,
    /// New TOTP secret and recovery codes, which are shown only once.
    pub passcode: Option<(PasscodeSecret, Vec<RecoveryCode>)>,
    /// Enrolment code for re-enrolment with its expiry, which is shown only once.
    pub enrolment: Option<(EnrolmentCode, Timestamp)>,
}

/// A change based on one version of a row.
struct Decided {
    change: AccountChange,
    after: SignedAccount,
    action: AuditAction,
    passcode: Option<(PasscodeSecret, Vec<RecoveryCode>)>,
    enrolment: Option<(EnrolmentCode, Timestamp)>,
}

impl Accounts {
    /// Runs `command` on an account or an invitation. For an invitation, only the role can be changed, or the
    /// invitation deleted.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`], [`Refusal::SeveralInvitations`] or [`Refusal::OnlyInvited`]: the account cannot be
    ///   found or has not been accepted.
    /// - [`Refusal::AwaitsEnrolment`]: a new password or passcode for an account that must enrol again.
    /// - [`Refusal::OwnAccount`]: re-enrolment of the caller's own account.
    /// - [`Refusal::LastAdmin`], never for an operator: no active admin would remain.
    /// - [`Refusal::Damaged`] or [`Refusal::Contended`]: the row is damaged or was changed concurrently.
    /// - A violation at `/password` if the password is invalid.
    pub async fn change(
        &self,
        principal: &Principal,
        account: AccountRef<'_>,
        command: AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        principal.administers(Action::ManageAccounts)?;
        if !matches!(principal, Principal::Operator) && !command.is_for_admins() {
            return Err(Denial::InsufficientRole.into());
        }
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
        let Decided { change, after, action, passcode, enrolment } =
            self.decide(principal, &current.signed, command).await?;
        let mut listed = ListedAccount { grant: after.grant.clone(), ..current.listed() };
        listed.invitation_expires_at =
            enrolment.as_ref().map(|(_, expires_at)| *expires_at).or(listed.invitation_expires_at);
        if matches!(change, AccountChange::Grant) && after.grant == current.signed.grant {
            return Ok(ChangedAccount { account: listed, passcode, enrolment });
        }
        let changes = changes(&current.signed.grant, &after.grant);
        let payload =
            ChangeAccount { version: current.signed.version, digest: after.digest(&*self.digester), after, change };
        let affected = self.left_by(&payload).changing(changes);
        let command = self.environment.command(principal, Some(organization), action, affected, payload);
        let recorded = Event::recorded(&command.audit);
        self.store.change_account(command).await?;
        self.environment.emit(recorded);
        Ok(ChangedAccount { account: listed, passcode, enrolment })
    }

    /// Returns the account with the states of its rows after the change.
    fn left_by(&self, payload: &ChangeAccount) -> Affected {
        let account = Subject::Account(payload.after.grant.account);
        let after = || payload.after.state(&*self.digester);
        match &payload.change {
            AccountChange::Grant | AccountChange::Password(_) | AccountChange::Passcode { .. } => {
                account.left(RecordedRow::Account, after())
            }
            AccountChange::ReEnrol { invitation, .. } => account
                .left(RecordedRow::Account, after())
                .and(RecordedRow::Invitation, invitation.state(&*self.digester)),
            AccountChange::Unlock => account.into(),
            AccountChange::Delete => {
                account.left(RecordedRow::Account, RowState::Gone).and(RecordedRow::Invitation, RowState::Gone)
            }
        }
    }

    async fn decide(
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
            passcode: None,
            enrolment: None,
        };
        let untouched =
            |change, action| Decided { change, after: current.clone(), action, passcode: None, enrolment: None };
        if matches!(command, AccountCommand::SetPassword(_) | AccountCommand::ResetPasscode)
            && current.awaits_enrolment()
        {
            return Err(Refusal::AwaitsEnrolment.into());
        }
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
            AccountCommand::SetPassword(password) => {
                let organization = self.store.organization(grant.organization).await?;
                let name = organization.as_ref().map_or("", |organization| organization.name.as_str());
                check_new_password(password, &grant.email, name).map_err(|violation| violation.at("/password"))?;
                let permit = self.hasher.permit(Requester::Trusted)?;
                let sealed = self.hasher.hash(permit, grant.account, password.clone()).await?;
                Decided {
                    after: current.with_password(sealed.id),
                    change: AccountChange::Password(sealed),
                    action: AuditAction::AccountPasswordChanged,
                    passcode: None,
                    enrolment: None,
                }
            }
            AccountCommand::ResetPasscode => {
                let seed = self.passcodes.new_seed(grant.account, &grant.email)?;
                let recovery = self.passcodes.new_recovery_codes(grant.account, &seed.sealed)?;
                Decided {
                    after: current.with_seed(seed.sealed.id),
                    change: AccountChange::Passcode { seed: seed.sealed, recovery_codes: recovery.digests },
                    action: AuditAction::AccountPasscodeReset,
                    passcode: Some((seed.secret, recovery.codes)),
                    enrolment: None,
                }
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
            passcode: None,
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
