//! Invitations: an address, a role and a code with which the user creates the account.

use super::Accounts;
use super::find::parse_email;
use crate::account::{AccountRights, AccountState};
use crate::audit::{Actor, AuditAction, RecordedRow, Subject};
use crate::email::EmailAddress;
use crate::enrolment::EnrolmentCode;
use crate::error::{Error, Refusal};
use crate::id::{AccountId, OrganizationId};
use crate::invitation::{INVITATION_SECONDS, Invitation, StoredInvitation};
use crate::port::{CreateInvitation, Event, StoreError};
use crate::principal::Principal;
use crate::role::{Action, Role};
use crate::time::Timestamp;
use crate::usecase::under_active_key;

/// A new invitation.
pub struct Invited {
    /// Rights of the future account.
    pub grant: AccountRights,
    /// Enrolment code, which is shown only once.
    pub code: EnrolmentCode,
    /// Time from which it can no longer be accepted.
    pub expires_at: Timestamp,
}

impl Accounts {
    /// Invites the user with the address `email` to the organization, with the role `role`.
    ///
    /// # Errors
    /// Those of [`create_invitation`](crate::port::InvitationRepository::create_invitation).
    pub async fn invite(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        email: &str,
        role: Role,
    ) -> Result<Invited, Error> {
        principal.administers(Action::ManageAccounts)?;
        let email = parse_email(email)?;
        under_active_key(&self.environment, &*self.digester, || self.invite_once(principal, organization, &email, role))
            .await
    }

    async fn invite_once(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        email: &EmailAddress,
        role: Role,
    ) -> Result<Invited, Error> {
        let now = self.environment.now();
        let account = AccountId::from_uuid(self.environment.ids.ordered(now));
        let code = EnrolmentCode::generate(&*self.entropy)?;
        let address = self.address(email);
        let (email, state) = (email.clone(), AccountState::Invited);
        let grant = AccountRights { account, organization, email, role, state };
        let expires_at = now.plus_seconds(INVITATION_SECONDS);
        let invitation = Invitation {
            grant: grant.clone(),
            invited_by: principal.account(),
            code: code.digest(&*self.digester),
            created_at: now,
            expires_at,
        };
        let (organization, subject) = (Some(organization), Subject::Account(account));
        let refused = AuditAction::InvitationRefused;
        let payload = CreateInvitation {
            stored: StoredInvitation::sign(invitation, StoredInvitation::FIRST_VERSION, &*self.digester),
            address,
            address_in_use: self.environment.record(now, organization, Actor::from(principal), refused, subject),
        };
        let affected = subject.left(RecordedRow::Invitation, payload.stored.state(&*self.digester));
        let command = self.environment.command(principal, organization, AuditAction::AccountInvited, affected, payload);
        let (invited, in_use) = (Event::recorded(&command.audit), Event::recorded(&command.payload.address_in_use));
        let outcome = self.store.create_invitation(command).await;
        match &outcome {
            Ok(()) => self.environment.emit(invited),
            Err(StoreError::Refused(Refusal::AddressInUse)) => self.environment.emit(in_use),
            Err(_) => {}
        }
        Ok(outcome.map(|()| Invited { grant, code, expires_at })?)
    }
}
