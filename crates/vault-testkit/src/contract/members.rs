//! Invitations, and changes that users make to their own accounts.

use super::Store;
use super::tools::{By, Conclusion, Settled as _, by_address, principal_of, proof_of};
use super::world::{Holder, ReadAccount, World};
use crate::crypto::FakeDigester;
use std::sync::Arc;
use vault_core::account::{
    AccountChange, AccountKey, AccountRights, AccountSecrets, AccountState, FindAccount, FoundAccount, ListAccounts,
    ListedAccount, OwnAccount, ReadOwnAccount,
};
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, SessionId};
use vault_core::invitation::{
    ChangeInvitation, ConfirmEnrolment, CreateInvitation, EnrolmentDraft, FindInvitation, INVITATION_SECONDS,
    Invitation, InvitationChange, OpenInvitation, WriteDraft,
};
use vault_core::login::{AttemptOutcome, OwnChange, ProofEffect, VerifiedFactors, VerifiedProof};
use vault_core::notice::NoticeCode;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{IdGenerator, KeyedDigester};
use vault_core::principal::{Denial, Principal, Scope, SessionPrincipal};
use vault_core::role::Role;
use vault_core::session::{ListSessions, StoredSession};
use vault_core::{Error, Refusal};

impl World<'_> {
    // Finding and listing

    pub(super) fn look_for(&self, principal: Principal, key: AccountKey) -> By<FindAccount> {
        By { payload: FindAccount { scope: principal.scope(), key }, principal }
    }

    pub(super) async fn find(&self, principal: Principal, key: AccountKey) -> Option<FoundAccount> {
        self.run(self.look_for(principal, key)).await.unwrap()
    }

    /// Returns the account with this address, as an operator finds it.
    pub(super) async fn account(&self, address: &EmailAddress) -> Option<ListedAccount> {
        self.account_in(&self.store, address).await
    }

    /// Returns the account with this address in a store, as an operator finds it.
    pub(super) async fn account_in(&self, store: &Arc<dyn Store>, address: &EmailAddress) -> Option<ListedAccount> {
        let By { principal, payload } = self.look_for(Principal::Operator, by_address(address));
        match self.operate_on(store, &principal, payload).await.unwrap()? {
            FoundAccount::Account(account) => Some(*account),
            FoundAccount::Invitation(_) | FoundAccount::Invitations(_) => None,
        }
    }

    pub(super) fn list_accounts(&self, principal: Principal, scope: Scope) -> By<ListAccounts> {
        By { principal, payload: ListAccounts { scope, after: None, limit: 100_000 } }
    }

    /// Returns the accounts in an operator's list of one organization or of all.
    pub(super) async fn accounts(&self, organization: Option<OrganizationId>) -> Vec<ListedAccount> {
        let scope = organization.map_or(Scope::All, Scope::One);
        self.run(self.list_accounts(Principal::Operator, scope)).await.unwrap()
    }

    // Invitations

    /// Returns an invitation of a new user, and the address.
    pub(super) fn invitation(&self, role: Role) -> (Invitation, EmailAddress) {
        let account = AccountId::from_uuid(self.ids.ordered(self.now()));
        let email = EmailAddress::parse(&format!("{account}@contract.example")).unwrap();
        let grant =
            AccountRights { account, organization: self.organization, email, role, state: AccountState::Invited };
        let code = FakeDigester::default().digest(DigestPurpose::EnrolmentCode, &[self.ids.random().as_bytes()]);
        let address = grant.email.clone();
        let expires_at = self.now().plus_seconds(INVITATION_SECONDS);
        (Invitation { grant, invited_by: None, code, created_at: self.now(), expires_at }, address)
    }

    pub(super) fn invite(&self, principal: &Principal, invitation: &Invitation) -> By<CreateInvitation> {
        By { principal: principal.clone(), payload: CreateInvitation(invitation.clone()) }
    }

    pub(super) fn invitation_for(&self, email: &EmailAddress, role: Role) -> Invitation {
        let (mut invitation, _) = self.invitation(role);
        invitation.grant.email = email.clone();
        invitation
    }

    /// Creates an invitation.
    pub(super) async fn invites(&self, command: By<CreateInvitation>) -> Result<(), Refusal> {
        self.run(command).await.decided()?
    }

    /// Returns an invitation that an operator sent to a new user.
    pub(super) async fn invited(&self, role: Role) -> (Invitation, EmailAddress) {
        let (invitation, address) = self.invitation(role);
        self.invites(self.invite(&Principal::Operator, &invitation)).await.unwrap();
        (invitation, address)
    }

    pub(super) fn write_draft(&self, invitation: &Invitation) -> WriteDraft {
        let AccountRights { organization, account, .. } = invitation.grant;
        let recovery_codes = (0..10).map(|_| self.recovery_code()).collect();
        let draft = EnrolmentDraft { secrets: self.secrets(), recovery_codes };
        WriteDraft { organization, account, code: invitation.code, draft }
    }

    /// Writes a draft and returns its content.
    pub(super) async fn drafted(&self, invitation: &Invitation) -> EnrolmentDraft {
        let command = self.write_draft(invitation);
        let draft = command.draft.clone();
        assert!(self.writes(command).await, "the invitation is open");
        draft
    }

    /// Writes a draft. Returns `false` if the invitation is not open.
    pub(super) async fn writes(&self, draft: WriteDraft) -> bool {
        self.operate(&Principal::Operator, draft).await.unwrap()
    }

    pub(super) async fn open(&self, invitation: &Invitation) -> Option<OpenInvitation> {
        self.operate(&Principal::Operator, FindInvitation(invitation.code)).await.unwrap()
    }

    pub(super) fn confirm_enrolment(&self, open: &OpenInvitation, step: TimeStep) -> ConfirmEnrolment {
        let AccountRights { organization, account, .. } = open.invitation.grant;
        let (re_enrols, code) = (open.invitation.re_enrols(), open.invitation.code);
        let secrets = open.draft.as_ref().expect("there is a draft").secrets.id;
        ConfirmEnrolment { organization, account, re_enrols, code, secrets, step }
    }

    /// Confirms an enrolment. Returns `true` if the account was created.
    pub(super) async fn confirms(&self, command: ConfirmEnrolment) -> bool {
        self.operate(&Principal::Operator, command).await.decided() == Ok(())
    }

    /// Returns the change that requires the user to enrol again, and the invitation to it.
    pub(super) fn re_enrolment(&self, holder: &Holder) -> (AccountChange, Invitation) {
        let (Invitation { code, created_at, expires_at, .. }, _) = self.invitation(holder.account.grant.role);
        let grant = AccountRights { state: AccountState::ReEnrolling, ..holder.account.grant.clone() };
        let invitation = Invitation { grant, invited_by: None, code, created_at, expires_at };
        (AccountChange::ReEnrol(code), invitation)
    }

    /// Requires the user to enrol again, as an operator.
    pub(super) async fn re_enrolling(&self, holder: &Holder) -> Invitation {
        let (change, invitation) = self.re_enrolment(holder);
        self.change(holder, change).await;
        invitation
    }

    /// Completes a re-enrolment with the newest draft. Returns the user's new values.
    pub(super) async fn re_enrolled(&self, invitation: &Invitation) -> Holder {
        let draft = self.drafted(invitation).await;
        let open = self.open(invitation).await.expect("it is open");
        let PasscodeProof::Step(step) = self.fresh_step() else { panic!("a step") };
        assert!(self.confirms(self.confirm_enrolment(&open, step)).await);
        let account = ReadAccount((invitation.grant.organization, invitation.grant.account));
        let account = self.operate(&Principal::Operator, account).await.unwrap().expect("it is enrolled");
        Holder { account, secrets: draft.secrets, recovery_codes: draft.recovery_codes }
    }

    pub(super) fn change_invitation(
        &self,
        principal: &Principal,
        invitation: &Invitation,
        change: InvitationChange,
    ) -> By<ChangeInvitation> {
        let AccountRights { organization, account, .. } = invitation.grant;
        let payload = ChangeInvitation { organization, account, change };
        By { principal: principal.clone(), payload }
    }

    // Own account

    /// Returns a replacement of the user's recovery codes.
    pub(super) fn own_codes(&self, codes: Vec<Digest>) -> OwnChange {
        let AccountSecrets { id, seed, .. } = self.secrets();
        OwnChange::RecoveryCodes { id, seed, codes }
    }

    /// Returns a change of the user's own account, authenticated by `passcode`.
    pub(super) fn prove(
        &self,
        holder: &Holder,
        principal: &SessionPrincipal,
        passcode: PasscodeProof,
        change: OwnChange,
    ) -> Conclusion {
        let proof = VerifiedProof { passcode, rehashed: None, effect: ProofEffect::Own(change) };
        let by = Principal::Session(principal.clone());
        Conclusion { by, ..self.bring(holder, self.network(), VerifiedFactors::Proof(Box::new(proof))) }
    }

    /// Executes a change of the user's own account.
    pub(super) async fn proven(&self, holder: &Holder, principal: &SessionPrincipal, change: OwnChange) {
        let command = self.prove(holder, principal, self.fresh_step(), change);
        assert_eq!(self.conclude(command).await, AttemptOutcome::Completed);
    }

    pub(super) async fn own_account(&self, principal: &SessionPrincipal) -> OwnAccount {
        self.read_own(principal).await.unwrap()
    }

    pub(super) async fn read_own(&self, principal: &SessionPrincipal) -> Result<OwnAccount, Error> {
        self.operate(&principal.clone().into(), ReadOwnAccount(principal.clone())).await
    }

    /// Returns whether the session is authorized, according to an operation that reads its account.
    pub(super) async fn acts(&self, principal: &SessionPrincipal) -> Result<(), Denial> {
        self.read_own(principal).await.settled().map(drop)
    }

    /// Returns the notices of the principal's account, sorted.
    pub(super) async fn notices(&self, principal: &SessionPrincipal) -> Vec<(NoticeCode, i64)> {
        let notices = self.own_account(principal).await.notices;
        let mut notices: Vec<_> = notices.iter().map(|notice| (notice.code, notice.at.as_millis())).collect();
        notices.sort_by_key(|(code, at)| (*at, code.as_str()));
        notices
    }

    /// Returns an attempt with a wrong passcode, or otherwise with a wrong password.
    pub(super) fn refuse(&self, holder: &Holder, wrong_passcode: bool) -> Conclusion {
        let presented = match wrong_passcode {
            true => VerifiedFactors::WrongPasscode,
            false => VerifiedFactors::WrongPassword { recovery_code: None },
        };
        self.bring(holder, self.network(), presented)
    }

    // Sessions

    /// Logs in, with a session that is valid for `seconds`.
    pub(super) async fn log_in_for(&self, holder: &Holder, seconds: i64) -> SessionPrincipal {
        let mut command = self.complete_login(holder, self.network(), self.fresh_step());
        if let ProofEffect::Session(session) = &mut proof_of(&mut command).effect {
            session.expires_at = self.now().plus_seconds(seconds);
        }
        let version = self.read(holder).await.account.sessions.since;
        let principal = SessionPrincipal { version, ..principal_of(&command) };
        assert_eq!(self.conclude(command).await, AttemptOutcome::Completed);
        principal
    }

    pub(super) async fn list_sessions(&self, principal: &SessionPrincipal) -> Result<Vec<StoredSession>, Error> {
        self.operate(&principal.clone().into(), ListSessions(principal.clone())).await
    }

    /// Returns the IDs of the sessions in the principal's list, in order.
    pub(super) async fn sessions(&self, principal: &SessionPrincipal) -> Vec<SessionId> {
        let sessions = self.list_sessions(principal).await.unwrap();
        sessions.into_iter().map(|stored| stored.session.id).collect()
    }
}
