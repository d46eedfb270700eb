//! Invite somebody: an address, a role and a code by which its owner makes the account.

use super::Ambient;
use crate::account::{AccountGrant, AccountState};
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::DigestPurpose;
use crate::email::{EmailAddress, InvalidEmailAddress};
use crate::enrolment::EnrolmentCode;
use crate::id::{AccountId, OrganizationId};
use crate::invitation::{INVITATION_SECONDS, Invitation};
use crate::organization::OrganizationName;
use crate::port::{
    CreateInvitation, CreateInvitationOutcome, Entropy, InvitationRepository, KeyedDigester, NoEntropy,
    OrganizationRepository, StoreError,
};
use crate::principal::{Denial, Principal, SessionPrincipal};
use crate::role::Role;
use std::sync::Arc;

/// Who invites, and to where.
#[derive(Clone, Debug)]
pub enum Inviter {
    /// An operator, to the organization of this name.
    Operator(String),
    /// An admin's session, to its own organization.
    Session(SessionPrincipal),
}

/// An invitation that was made.
pub struct Invited {
    /// What it will grant.
    pub grant: AccountGrant,
    /// The enrolment code; shown this once.
    pub code: EnrolmentCode,
    /// The first moment at which it cannot be taken up any more.
    pub expires_at: crate::time::Timestamp,
}

/// Why nobody was invited.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// The role does not permit it.
    #[error("the role does not permit administering accounts")]
    InsufficientRole,
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// No organization of this name.
    #[error("no organization of this name")]
    NoOrganization,
    /// The address is refused.
    #[error(transparent)]
    Email(#[from] InvalidEmailAddress),
    /// The address belongs to an account or an open invitation already.
    #[error("an account or invitation with this address is already there")]
    AddressTaken,
    /// No randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of inviting.
pub struct Invite {
    /// Surroundings.
    pub ambient: Ambient,
    /// Chance, for codes.
    pub entropy: Arc<dyn Entropy>,
    /// Look-up digests and row codes.
    pub digester: Arc<dyn KeyedDigester>,
    /// Organizations.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Invitations.
    pub invitations: Arc<dyn InvitationRepository>,
}

impl Invite {
    /// Invites the owner of the address `email` to act as `role`.
    ///
    /// # Errors
    /// See [`InviteError`].
    pub async fn run(&self, inviter: Inviter, email: &str, role: Role) -> Result<Invited, InviteError> {
        let (authority, organization) = self.authority(inviter).await?;
        let email = EmailAddress::parse(email)?;
        let now = self.ambient.now();
        let account = AccountId::from_uuid(self.ambient.ids.ordered(now));
        let code = EnrolmentCode::generate(&*self.entropy)?;
        let address = self.digester.digest(DigestPurpose::Address, &[email.as_str().as_bytes()]);
        let grant = AccountGrant { account, organization, email, role, state: AccountState::Invited };
        let expires_at = now.plus_seconds(INVITATION_SECONDS);
        let invitation =
            Invitation { grant: grant.clone(), code: code.digest(&*self.digester), created_at: now, expires_at };
        let (actor, subject) = (Actor::from(&authority), Subject::Account(account));
        let command = CreateInvitation {
            authority,
            digest: invitation.digest(&*self.digester),
            invitation,
            address,
            now,
            audit: self.ambient.record(now, Some(organization), actor, AuditAction::AccountInvited, subject),
        };
        match self.invitations.create_invitation(command).await? {
            CreateInvitationOutcome::Created => Ok(Invited { grant, code, expires_at }),
            CreateInvitationOutcome::AddressTaken => Err(InviteError::AddressTaken),
            CreateInvitationOutcome::NoOrganization => Err(InviteError::NoOrganization),
            CreateInvitationOutcome::Refused(refusal) => Err(InviteError::Principal(refusal)),
        }
    }

    /// By whose order, and to which organization.
    async fn authority(&self, inviter: Inviter) -> Result<(Principal, OrganizationId), InviteError> {
        match inviter {
            Inviter::Operator(name) => {
                let name = OrganizationName::parse(&name).map_err(|_| InviteError::NoOrganization)?;
                let organization = self.organizations.find_organization(&name).await?;
                Ok((Principal::Operator, organization.ok_or(InviteError::NoOrganization)?.id))
            }
            Inviter::Session(principal) => {
                let organization = principal.organization;
                let authority = Principal::Session(principal);
                if authority.administers(crate::role::Action::ManageAccounts).is_ok() {
                    Ok((authority, organization))
                } else {
                    Err(InviteError::InsufficientRole)
                }
            }
        }
    }
}
