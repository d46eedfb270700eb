//! Change an account: state, role, password, passcode, waits; or delete it. Operators name it by its address, an
//! admin of its organization by its id.

use super::Ambient;
use crate::account::{Account, AccountGrant, AccountState};
use crate::audit::{Actor, AuditAction, SealedAuditRecord, Subject};
use crate::digest::DigestPurpose;
use crate::email::{EmailAddress, InvalidEmailAddress};
use crate::id::AccountId;
use crate::invitation::{Invitation, StoredInvitation};
use crate::passcode::{PasscodeSecret, RecoveryCode};
use crate::password::{PasswordFlaw, check_new_password};
use crate::port::{
    AccountChange, AccountKey, AccountRepository, ChangeAccount, ChangeAccountOutcome, ChangeInvitation, Event,
    FindAccount, FoundAccount, HashError, InvitationChange, InvitationRepository, KeyedDigester,
    OrganizationRepository, PasscodeVerifier, PasswordHasher, SealError, StoreError,
};
use crate::principal::{Denial, Principal, SessionPrincipal};
use crate::role::Role;
use crate::seats::Requester;
use secrecy::SecretString;
use std::sync::Arc;

/// How often a change is decided anew because the row changed under it.
const ATTEMPTS: usize = 5;

/// What to do with an account. All but [`AccountCommand::Unlock`] end its sessions.
pub enum AccountCommand {
    /// It may no longer log in.
    Disable,
    /// It may log in again.
    Enable,
    /// It has this role from now on.
    SetRole(Role),
    /// It has this password from now on.
    SetPassword(SecretString),
    /// It gets a new passcode seed and new recovery codes.
    ResetPasscode,
    /// Its waits end.
    Unlock,
    /// It goes for good.
    Delete,
}

impl AccountCommand {
    /// Whether an admin of the organization may give it, as an operator may. Nobody but its owner and operators
    /// touches what an account proves itself with.
    pub const fn is_for_admins(&self) -> bool {
        match self {
            Self::Disable | Self::Enable | Self::SetRole(_) | Self::Delete => true,
            Self::SetPassword(_) | Self::ResetPasscode | Self::Unlock => false,
        }
    }
}

/// A changed account, with what its owner must be given, if anything.
pub struct ChangedAccount {
    /// The account or invitation as it is now, or was before it was deleted.
    pub account: Account,
    /// The new passcode seed and recovery codes; shown this once.
    pub passcode: Option<(PasscodeSecret, Vec<RecoveryCode>)>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeAccountError {
    /// The role does not permit it, or it is for operators alone.
    #[error("the role does not permit this change")]
    InsufficientRole,
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// The address is not one.
    #[error(transparent)]
    Email(#[from] InvalidEmailAddress),
    /// No such account or invitation, or one of another organization.
    #[error("no such account")]
    NotFound,
    /// It is an invitation: until it is taken up, only its role can change.
    #[error("the account is only invited: until it is enrolled, only its role can be changed")]
    OnlyInvited,
    /// The organization would be left without an active admin.
    #[error("the organization's last active admin cannot be lowered, disabled or deleted")]
    LastAdmin,
    /// The row does not fit its code: it grants nothing and is not signed anew.
    #[error("the account's row does not fit its code: it was changed behind this service's back")]
    Damaged,
    /// The new password is refused.
    #[error(transparent)]
    Password(#[from] PasswordFlaw),
    /// The row changed again and again meanwhile.
    #[error("the account is being changed by others; try again")]
    Contended,
    /// Hashing failed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// Sealing failed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of changing accounts.
pub struct ChangeAccountUseCase {
    /// Surroundings.
    pub ambient: Ambient,
    /// Password hashing.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Seeds and recovery codes.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Look-up digests and row codes.
    pub digester: Arc<dyn KeyedDigester>,
    /// Organizations.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Accounts.
    pub accounts: Arc<dyn AccountRepository>,
    /// Invitations.
    pub invitations: Arc<dyn InvitationRepository>,
}

impl ChangeAccountUseCase {
    /// Carries `command` out on the account with the address `email`, as an operator.
    ///
    /// # Errors
    /// See [`ChangeAccountError`].
    pub async fn as_operator(
        &self,
        email: &str,
        command: AccountCommand,
    ) -> Result<ChangedAccount, ChangeAccountError> {
        let email = EmailAddress::parse(email)?;
        let address = self.digester.digest(DigestPurpose::Address, &[email.as_str().as_bytes()]);
        self.run(Principal::Operator, AccountKey::Address(address), command).await
    }

    /// Carries `command` out on an account of the principal's organization, as its admin.
    ///
    /// # Errors
    /// See [`ChangeAccountError`].
    pub async fn as_admin(
        &self,
        principal: &SessionPrincipal,
        account: AccountId,
        command: AccountCommand,
    ) -> Result<ChangedAccount, ChangeAccountError> {
        let authority = Principal::Session(principal.clone());
        if authority.administers(crate::role::Action::ManageAccounts).is_err() || !command.is_for_admins() {
            return Err(ChangeAccountError::InsufficientRole);
        }
        self.run(authority, AccountKey::Id(principal.organization, account), command).await
    }

    async fn run(
        &self,
        authority: Principal,
        key: AccountKey,
        command: AccountCommand,
    ) -> Result<ChangedAccount, ChangeAccountError> {
        for _ in 0..ATTEMPTS {
            let query = FindAccount { authority: authority.clone(), key, now: self.ambient.now() };
            let found = self.accounts.find_account(query).await.map_err(|error| self.ambient.witness(error))?;
            let found = found.map_err(ChangeAccountError::Principal)?.ok_or(ChangeAccountError::NotFound)?;
            let (outcome, changed) = match found {
                FoundAccount::Account(account) => self.change_account(&authority, account, &command).await?,
                FoundAccount::Invitation(stored) => self.change_invitation(&authority, stored, &command).await?,
            };
            match outcome {
                ChangeAccountOutcome::Changed => return Ok(changed),
                ChangeAccountOutcome::NotFound => return Err(ChangeAccountError::NotFound),
                ChangeAccountOutcome::LastAdmin => return Err(ChangeAccountError::LastAdmin),
                ChangeAccountOutcome::Refused(refusal) => return Err(ChangeAccountError::Principal(refusal)),
                ChangeAccountOutcome::Stale => {}
            }
        }
        Err(ChangeAccountError::Contended)
    }

    async fn change_account(
        &self,
        authority: &Principal,
        current: Account,
        command: &AccountCommand,
    ) -> Result<(ChangeAccountOutcome, ChangedAccount), ChangeAccountError> {
        // Signing it anew would make a row planted by SQL grant something.
        if current.grant.digest(&*self.digester) != current.grant_digest {
            return Err(self.damaged("accounts", current.grant.account));
        }
        let (change, action, changed) = self.decide(&current, command).await?;
        let command = ChangeAccount {
            authority: authority.clone(),
            organization: current.grant.organization,
            account: current.grant.account,
            version: current.version,
            change,
            now: self.ambient.now(),
            audit: self.record(authority, &current.grant, action),
        };
        Ok((self.accounts.change_account(command).await?, changed))
    }

    async fn change_invitation(
        &self,
        authority: &Principal,
        current: StoredInvitation,
        command: &AccountCommand,
    ) -> Result<(ChangeAccountOutcome, ChangedAccount), ChangeAccountError> {
        let grant = current.invitation.grant.clone();
        let (change, action, changed) = match command {
            // Withdrawing needs no sound row: it grants nothing.
            AccountCommand::Delete => (InvitationChange::Delete, AuditAction::InvitationDeleted, current.clone()),
            AccountCommand::SetRole(role) => {
                if !current.is_sound(&*self.digester) {
                    return Err(self.damaged("invitations", grant.account));
                }
                let grant = AccountGrant { role: *role, ..grant.clone() };
                let invitation = Invitation { grant: grant.clone(), ..current.invitation };
                let digest = invitation.digest(&*self.digester);
                let changed = StoredInvitation { invitation, digest, version: current.version };
                (InvitationChange::Grant { grant, digest }, AuditAction::InvitationChanged, changed)
            }
            _ => return Err(ChangeAccountError::OnlyInvited),
        };
        let command = ChangeInvitation {
            authority: authority.clone(),
            organization: grant.organization,
            account: grant.account,
            version: current.version,
            change,
            now: self.ambient.now(),
            audit: self.record(authority, &grant, action),
        };
        let outcome = self.invitations.change_invitation(command).await?;
        Ok((outcome, ChangedAccount { account: changed.listed(), passcode: None }))
    }

    fn record(&self, authority: &Principal, grant: &AccountGrant, action: AuditAction) -> SealedAuditRecord {
        let (actor, subject) = (Actor::from(authority), Subject::Account(grant.account));
        self.ambient.record(self.ambient.now(), Some(grant.organization), actor, action, subject)
    }

    fn damaged(&self, table: &'static str, account: AccountId) -> ChangeAccountError {
        self.ambient.emit(Event::IntegrityFailure { table, id: account.to_string() });
        ChangeAccountError::Damaged
    }

    async fn decide(
        &self,
        current: &Account,
        command: &AccountCommand,
    ) -> Result<(AccountChange, AuditAction, ChangedAccount), ChangeAccountError> {
        let grant = current.grant.clone();
        let unchanged = |change, action| (change, action, ChangedAccount { account: current.clone(), passcode: None });
        let regranted = |grant: AccountGrant, action| {
            let digest = grant.digest(&*self.digester);
            let account = Account { grant: grant.clone(), grant_digest: digest, ..current.clone() };
            (AccountChange::Grant { grant, digest }, action, ChangedAccount { account, passcode: None })
        };
        Ok(match command {
            AccountCommand::Disable => {
                regranted(AccountGrant { state: AccountState::Disabled, ..grant.clone() }, AuditAction::AccountDisabled)
            }
            AccountCommand::Enable => {
                regranted(AccountGrant { state: AccountState::Active, ..grant.clone() }, AuditAction::AccountEnabled)
            }
            AccountCommand::SetRole(role) => {
                regranted(AccountGrant { role: *role, ..grant.clone() }, AuditAction::AccountRoleChanged)
            }
            AccountCommand::SetPassword(password) => {
                let organization = self.organizations.organization(grant.organization).await?;
                let name = organization.as_ref().map_or("", |organization| organization.name.as_str());
                check_new_password(password, &grant.email, name)?;
                let permit = self.hasher.permit(Requester::Trusted)?;
                let sealed = self.hasher.hash(permit, grant.account, password.clone()).await?;
                unchanged(AccountChange::Password(sealed), AuditAction::AccountPasswordChanged)
            }
            AccountCommand::ResetPasscode => {
                let seed = self.passcodes.new_seed(grant.account, &grant.email)?;
                let recovery = self.passcodes.new_recovery_codes(grant.account)?;
                let change = AccountChange::Passcode { seed: seed.sealed, recovery_codes: recovery.digests };
                let passcode = Some((seed.secret, recovery.codes));
                (change, AuditAction::AccountPasscodeReset, ChangedAccount { account: current.clone(), passcode })
            }
            AccountCommand::Unlock => unchanged(AccountChange::Unlock, AuditAction::AccountUnlocked),
            AccountCommand::Delete => unchanged(AccountChange::Delete, AuditAction::AccountDeleted),
        })
    }
}
