//! Creation of accounts.

use super::{ACCOUNT_LIMIT_REACHED, MAX_ACCOUNTS, SignedAccount, insert_account};
use crate::audit::AuditAction;
use crate::digest::{Digest, RowMac};
use crate::error::Refusal;
use crate::id::OrganizationId;
use crate::invitation::{discard, invitation_for};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::passcode::TimeStep;
use crate::sealed::{Blob, SealedPassword, SealedSeed};
use crate::time::Timestamp;

/// Creates an account that can log in immediately, in place of an expired invitation of the organization for the address.
///
/// # Errors
/// - [`Refusal::NoOrganization`]: the organization does not exist.
/// - [`Refusal::AddressTaken`]: the address belongs to an account of any organization, or to an open invitation of this one.
/// - [`ACCOUNT_LIMIT_REACHED`]: the organization has the maximum number of accounts and invitations.
/// - [`Refusal::Contended`]: a secret was sealed with an instance key that is no longer active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateAccount {
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// The sealed password.
    pub password: SealedPassword,
    /// The sealed TOTP secret.
    pub seed: SealedSeed,
    /// Digests of its recovery codes.
    pub recovery_codes: Vec<Digest>,
}

/// An account to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccount {
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// MAC of the row.
    pub digest: RowMac,
    /// The sealed password.
    pub password: SealedPassword,
    /// The sealed TOTP secret.
    pub seed: SealedSeed,
    /// Digests of its recovery codes.
    pub recovery_codes: Vec<Digest>,
    /// Last used step of its TOTP secret.
    pub last_step: TimeStep,
    /// Time of its creation, and of the enrolment of its passcode.
    pub created_at: Timestamp,
}

impl Operation for CreateAccount {
    type Outcome = ();
    const ACCESS: Access = Access::Write;

    /// Runs alone, because an address is unique in the instance: two shared transactions could wait for each other.
    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let (rows, grant) = (unit.rows(), &self.signed.grant);
        let place @ (organization, _) = (grant.organization, grant.account);
        rows.lock(organization).await?;
        unit.authorize().await?;
        if !unit.principal().reaches(organization) || unit.organization(organization).await?.is_none() {
            return Err(Refusal::NoOrganization.into());
        }
        let invited = invitation_for(unit, &grant.email, organization).await?;
        if invited.as_ref().is_some_and(|invited| invited.is_open(unit.now())) {
            return Err(Refusal::AddressTaken.into());
        }
        require_room(unit, organization).await?;
        unit.require_current([&self.password.blob, &self.seed.blob].into_iter().filter_map(Blob::key)).await?;
        if !rows.enter_address(&grant.email, place).await? {
            return Err(Refusal::AddressTaken.into());
        }
        if let Some(expired) = invited {
            discard(unit, (organization, expired.grant.account)).await?;
        }
        let secrets = (self.password.clone(), self.seed.clone(), self.recovery_codes.clone());
        let affected = insert_account(unit, &self.signed, secrets, TimeStep::NONE).await?;
        unit.record(Some(organization), AuditAction::AccountCreated, affected).await
    }
}

/// Checks that an organization may have one more account or invitation.
pub(crate) async fn require_room(unit: &Unit<'_>, organization: OrganizationId) -> Result<(), Failure> {
    match unit.rows().count_accounts(organization).await? {
        there if there < MAX_ACCOUNTS => Ok(()),
        _ => Err(ACCOUNT_LIMIT_REACHED.into()),
    }
}
