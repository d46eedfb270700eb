//! Creation of invitations.

use super::{Invitation, StoredInvitation};
use crate::account::require_room;
use crate::audit::{AuditAction, RecordedRow, Subject};
use crate::digest::LookupDigests;
use crate::error::Refusal;
use crate::hourly::{ADDRESS_CONFLICTS, HourlyLimit};
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::principal::Principal;

/// Creates an invitation, in place of an expired one of the organization for the same address.
///
/// # Errors
/// - [`Refusal::NoOrganization`]: the organization does not exist.
/// - [`Refusal::AlreadyInvited`]: the organization has an open invitation for the address.
/// - [`ACCOUNT_LIMIT_REACHED`](crate::account::ACCOUNT_LIMIT_REACHED): the organization has the maximum number of accounts
///   and invitations.
/// - [`Refusal::TooManyConflicts`]: the limit [`HourlyLimit::ADDRESS_CONFLICTS`] is exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateInvitation {
    /// The invitation.
    pub invitation: Invitation,
    /// Lookup digests of its address.
    pub address: LookupDigests,
}

impl Operation for CreateInvitation {
    /// [`Refusal::AddressInUse`] if the address has an account. The refusal is recorded and, except for operators, counted.
    type Outcome = Result<(), Refusal>;
    const ACCESS: Access = Access::Write;

    /// Runs alone, because an address is unique in the instance: two shared transactions could wait for each other.
    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let (rows, now, grant) = (unit.rows(), unit.now(), &self.invitation.grant);
        let place @ (organization, account) = (grant.organization, grant.account);
        rows.lock(organization).await?;
        unit.authorize().await?;
        if !unit.principal().reaches(organization) || unit.organization(organization).await?.is_none() {
            return Err(Refusal::NoOrganization.into());
        }
        if *unit.principal() != Principal::Operator {
            let conflicts = rows.lock_hourly_count(organization, ADDRESS_CONFLICTS, now).await?;
            if let Some(seconds) = conflicts.refused_for(HourlyLimit::ADDRESS_CONFLICTS, now) {
                return Err(Refusal::TooManyConflicts(seconds).into());
            }
        }
        if rows.account_of(&self.address).await?.is_some() {
            return self.refuse(unit).await;
        }
        let invited = rows.invitation_of(&self.address, organization).await?;
        if invited.as_ref().is_some_and(|invited| invited.invitation.is_open(now)) {
            return Err(Refusal::AlreadyInvited.into());
        }
        require_room(unit, organization).await?;
        let stored = StoredInvitation::sign(self.invitation.clone(), StoredInvitation::FIRST_VERSION, unit.digester());
        unit.require_active_key(stored.digest.key).await?;
        // Until it is removed below, no other transaction creates an account of the address.
        if !rows.enter_address(&self.address, place).await? {
            return self.refuse(unit).await;
        }
        if let Some(expired) = invited {
            rows.remove_invitation(&expired).await?;
        }
        if !rows.enter_invited(&self.address, place).await? {
            return Err(Refusal::AlreadyInvited.into());
        }
        rows.insert_invitation(&stored).await?;
        rows.leave_address(place).await?;
        let affected = Subject::Account(account).left(RecordedRow::Invitation, stored.state(unit.digester()));
        unit.record(Some(organization), AuditAction::AccountInvited, affected).await?;
        Ok(Ok(()))
    }
}

impl CreateInvitation {
    /// Counts and records that an address of an account was invited.
    async fn refuse(&self, unit: &Unit<'_>) -> Result<Result<(), Refusal>, Failure> {
        let (rows, now, grant) = (unit.rows(), unit.now(), &self.invitation.grant);
        // An operator may know every address.
        if *unit.principal() != Principal::Operator {
            let conflicts = rows.lock_hourly_count(grant.organization, ADDRESS_CONFLICTS, now).await?;
            rows.set_hourly_count(grant.organization, ADDRESS_CONFLICTS, conflicts.plus_one(now)).await?;
        }
        let subject = Subject::Account(grant.account).into();
        unit.record(Some(grant.organization), AuditAction::InvitationRefused, subject).await?;
        Ok(Err(Refusal::AddressInUse))
    }
}
