//! Invitations: an address, a role and a code with which the user creates the account.

use super::Accounts;
use super::find::parse_email;
use crate::account::{AccountRights, AccountState};
use crate::enrolment::EnrolmentCode;
use crate::error::Error;
use crate::id::{AccountId, OrganizationId};
use crate::invitation::{CreateInvitation, INVITATION_SECONDS, Invitation};
use crate::principal::Principal;
use crate::role::{Action, Role};
use crate::time::Timestamp;

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
    /// Those of [`CreateInvitation`], and [`Refusal::AddressInUse`](crate::Refusal::AddressInUse) if the address has an account.
    pub async fn invite(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        email: &str,
        role: Role,
    ) -> Result<Invited, Error> {
        principal.administers(Action::ManageAccounts)?;
        let email = parse_email(email)?;
        let now = self.environment.now();
        let account = AccountId::from_uuid(self.environment.ids.ordered(now));
        let code = EnrolmentCode::generate(&*self.entropy)?;
        let state = AccountState::Invited;
        let grant = AccountRights { account, organization, email, role, state };
        let expires_at = now.plus_seconds(INVITATION_SECONDS);
        let invitation = Invitation {
            grant: grant.clone(),
            invited_by: principal.account(),
            code: code.digest(&*self.digester),
            created_at: now,
            expires_at,
        };
        self.operations.run(&self.environment, principal, CreateInvitation(invitation)).await??;
        Ok(Invited { grant, code, expires_at })
    }
}
