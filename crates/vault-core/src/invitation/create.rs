//! Creation of invitations.

use super::{Invitation, discard, invitation_for};
use crate::account::{Account, require_room};
use crate::audit::{AuditAction, Subject};
use crate::error::Refusal;
use crate::hourly::{ADDRESS_CONFLICTS, HourlyLimit};
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
pub struct CreateInvitation(pub Invitation);

impl Operation for CreateInvitation {
    /// [`Refusal::AddressInUse`] if the address has an account. The refusal is recorded and, except for operators, counted.
    type Outcome = Result<(), Refusal>;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.0.grant.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let (rows, now, grant) = (unit.rows(), unit.now(), &self.0.grant);
        let (organization, account) = (grant.organization, grant.account);
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
        let address = Account::at(&grant.email);
        if rows.find_anywhere(address.index, &address.value).await?.is_some() {
            return self.refuse(unit).await;
        }
        let invited = invitation_for(unit, &grant.email, organization).await?;
        if invited.as_ref().is_some_and(|invited| invited.is_open(now)) {
            return Err(Refusal::AlreadyInvited.into());
        }
        require_room(unit, organization).await?;
        if let Some(expired) = invited {
            discard(unit, (organization, expired.grant.account)).await?;
        }
        unit.insert(organization, *account.as_uuid(), &self.0).await?;
        let subject = Subject::Account(account).into();
        unit.record(Some(organization), AuditAction::AccountInvited, subject).await?;
        Ok(Ok(()))
    }
}

impl CreateInvitation {
    /// Counts and records that an address of an account was invited.
    async fn refuse(&self, unit: &Unit<'_>) -> Result<Result<(), Refusal>, Failure> {
        let (rows, now, grant) = (unit.rows(), unit.now(), &self.0.grant);
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
