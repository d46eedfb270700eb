//! A world's invitations, and what the owners of its accounts ask for.

use super::Store;
use super::tools::{address, principal_of};
use super::world::{Holder, World};
use crate::crypto::FakeDigester;
use vault_core::account::{Account, AccountGrant, AccountState};
use vault_core::audit::AuditAction;
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, SessionId};
use vault_core::invitation::{EnrolmentDraft, INVITATION_SECONDS, Invitation, StoredInvitation};
use vault_core::notice::NoticeCode;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{
    AccountKey, AccountScope, ChangeInvitation, CompleteProof, CompleteProofOutcome, ConfirmEnrolment,
    CreateInvitation, CreateInvitationOutcome, EndSession, FindAccount, FoundAccount, IdGenerator, InvitationChange,
    KeyedDigester, ListAccounts, ListSessions, OpenInvitation, OwnAccount, OwnChange, ProofEffect, RefuseAttempt,
    RefusedAccount, WriteDraft,
};
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::time::Timestamp;

/// The account with this address, as an operator finds it in `store`.
pub(super) async fn account_in(store: &dyn Store, address: Digest, now: Timestamp) -> Option<Account> {
    let query = FindAccount { authority: Principal::Operator, key: AccountKey::Address(address), now };
    match store.find_account(query).await.unwrap().expect("an operator may act")? {
        FoundAccount::Account(account) => Some(account),
        FoundAccount::Invitation(_) => None,
    }
}

impl World<'_> {
    // Finding and listing

    pub(super) async fn find(&self, authority: Principal, key: AccountKey) -> Option<FoundAccount> {
        let query = FindAccount { authority, key, now: self.now() };
        self.store.find_account(query).await.unwrap().expect("the authority may act")
    }

    /// The account with this address, as an operator finds it.
    pub(super) async fn account(&self, address: Digest) -> Option<Account> {
        account_in(&*self.store, address, self.now()).await
    }

    /// What an operator's list of an organization holds, or of all.
    pub(super) async fn accounts(&self, organization: Option<OrganizationId>) -> Vec<Account> {
        let scope = organization.map_or(AccountScope::Everywhere, AccountScope::Organization);
        self.list_accounts(scope).await
    }

    pub(super) async fn list_accounts(&self, scope: AccountScope) -> Vec<Account> {
        let query = ListAccounts { scope, now: self.now() };
        self.store.list_accounts(query).await.unwrap().expect("the session may act")
    }

    // Invitations

    /// An invitation of somebody new, and the digest of the address.
    pub(super) fn invitation(&self, role: Role) -> (Invitation, Digest) {
        let account = AccountId::from_uuid(self.ids.ordered(self.now()));
        let email = EmailAddress::parse(&format!("{account}@contract.example")).unwrap();
        let grant =
            AccountGrant { account, organization: self.organization, email, role, state: AccountState::Invited };
        let code = FakeDigester::default().digest(DigestPurpose::EnrolmentCode, &[self.ids.random().as_bytes()]);
        let address = address(grant.email.as_str());
        let expires_at = self.now().plus_seconds(INVITATION_SECONDS);
        (Invitation { grant, code, created_at: self.now(), expires_at }, address)
    }

    pub(super) fn invite(&self, authority: &Principal, invitation: &Invitation, address: Digest) -> CreateInvitation {
        CreateInvitation {
            authority: authority.clone(),
            invitation: invitation.clone(),
            digest: invitation.digest(&FakeDigester::default()),
            address,
            now: self.now(),
            audit: self.audit_in(invitation.grant.organization, AuditAction::AccountInvited),
        }
    }

    /// Somebody who was invited by an operator.
    pub(super) async fn invited(&self, role: Role) -> (Invitation, Digest) {
        let (invitation, address) = self.invitation(role);
        let outcome = self.store.create_invitation(self.invite(&Principal::Operator, &invitation, address)).await;
        assert_eq!(outcome.unwrap(), CreateInvitationOutcome::Created);
        (invitation, address)
    }

    pub(super) fn write_draft(&self, invitation: &Invitation) -> WriteDraft {
        let AccountGrant { organization, account, .. } = invitation.grant;
        WriteDraft {
            organization,
            account,
            code: invitation.code,
            draft: EnrolmentDraft {
                password: self.password(),
                seed: self.seed(),
                recovery_codes: (0..10).map(|_| self.recovery_code()).collect(),
            },
            now: self.now(),
            audit: self.audit_in(organization, AuditAction::EnrolmentDrafted),
        }
    }

    /// Writes a draft; what it holds.
    pub(super) async fn drafted(&self, invitation: &Invitation) -> EnrolmentDraft {
        let command = self.write_draft(invitation);
        let draft = command.draft.clone();
        assert!(self.store.write_draft(command).await.unwrap(), "the invitation is open");
        draft
    }

    pub(super) async fn open(&self, invitation: &Invitation) -> Option<OpenInvitation> {
        self.store.find_invitation(invitation.code, self.now()).await.unwrap()
    }

    pub(super) fn confirm_enrolment(&self, open: &OpenInvitation, step: TimeStep) -> ConfirmEnrolment {
        let StoredInvitation { invitation, version, .. } = &open.stored;
        let grant = invitation.enrolled();
        ConfirmEnrolment {
            grant_digest: grant.digest(&FakeDigester::default()),
            code: invitation.code,
            version: *version,
            seed: open.seed.as_ref().expect("there is a draft").id,
            step,
            now: self.now(),
            audit: self.audit_in(grant.organization, AuditAction::AccountEnrolled),
            grant,
        }
    }

    pub(super) fn change_invitation(
        &self,
        authority: &Principal,
        stored: &StoredInvitation,
        change: InvitationChange,
    ) -> ChangeInvitation {
        let AccountGrant { organization, account, .. } = stored.invitation.grant;
        let action = match change {
            InvitationChange::Grant { .. } => AuditAction::InvitationChanged,
            InvitationChange::Delete => AuditAction::InvitationDeleted,
        };
        ChangeInvitation {
            authority: authority.clone(),
            organization,
            account,
            version: stored.version,
            change,
            now: self.now(),
            audit: self.audit_in(organization, action),
        }
    }

    // Own account

    /// A change of one's own account, proven by `proof`.
    pub(super) fn prove(
        &self,
        holder: &Holder,
        principal: &SessionPrincipal,
        proof: PasscodeProof,
        change: OwnChange,
    ) -> CompleteProof {
        let action = match change {
            OwnChange::Password(_) => AuditAction::AccountPasswordChanged,
            OwnChange::PendingSeed { .. } => AuditAction::AccountPasscodeDrafted,
            OwnChange::RecoveryCodes(_) => AuditAction::AccountRecoveryCodesReplaced,
        };
        CompleteProof {
            effect: ProofEffect::Own { principal: principal.clone(), change },
            audit: self.audit_in(holder.grant.organization, action),
            ..self.complete_login(holder, self.network(), proof)
        }
    }

    /// Carries a change of one's own account out.
    pub(super) async fn proven(&self, holder: &Holder, principal: &SessionPrincipal, change: OwnChange) {
        let command = self.prove(holder, principal, self.fresh_step(), change);
        assert_eq!(self.store.complete_proof(command).await.unwrap(), CompleteProofOutcome::Completed);
    }

    pub(super) async fn own_account(&self, principal: &SessionPrincipal) -> OwnAccount {
        self.store.own_account(principal.clone(), self.now()).await.unwrap().expect("the session may act")
    }

    /// The notices of the principal's account, sorted.
    pub(super) async fn notices(&self, principal: &SessionPrincipal) -> Vec<(NoticeCode, i64)> {
        let notices = self.own_account(principal).await.notices;
        let mut notices: Vec<_> = notices.iter().map(|notice| (notice.code, notice.at.as_millis())).collect();
        notices.sort_by_key(|(code, at)| (*at, code.as_str()));
        notices
    }

    pub(super) fn refuse(&self, holder: &Holder, wrong_passcode: bool) -> RefuseAttempt {
        let record = |action| self.audit_in(holder.grant.organization, action);
        let action = if wrong_passcode { AuditAction::LoginPasscodeRefused } else { AuditAction::LoginRefused };
        RefuseAttempt::Account(Box::new(RefusedAccount {
            organization: holder.grant.organization,
            account: holder.grant.account,
            now: self.now(),
            audit: record(action),
            class_closed: None,
            wrong_passcode: wrong_passcode.then(|| record(AuditAction::LoginPasscodeDisabled)),
        }))
    }

    // Sessions

    /// A login whose session lasts for `seconds`.
    pub(super) async fn log_in_for(&self, holder: &Holder, seconds: i64) -> SessionPrincipal {
        let mut command = self.complete_login(holder, self.network(), self.fresh_step());
        if let ProofEffect::Session(session) = &mut command.effect {
            session.expires_at = self.now().plus_seconds(seconds);
        }
        let principal = principal_of(&command);
        assert_eq!(self.store.complete_proof(command).await.unwrap(), CompleteProofOutcome::Completed);
        principal
    }

    pub(super) fn end_other_session(&self, principal: &SessionPrincipal, session: SessionId) -> EndSession {
        EndSession { session, audit: self.audit(AuditAction::SessionEnded), ..self.end_session(principal) }
    }

    /// The ids of the sessions that the principal's list holds, in its order.
    pub(super) async fn sessions(&self, principal: &SessionPrincipal) -> Vec<SessionId> {
        let query = ListSessions { principal: principal.clone(), now: self.now() };
        let sessions = self.store.list_sessions(query).await.unwrap().expect("the session may act");
        sessions.into_iter().map(|session| session.id).collect()
    }
}
