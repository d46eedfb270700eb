//! Creation of accounts.

use super::{ACCOUNT_LIMIT_REACHED, Account, AccountRights, AccountSecrets, MAX_ACCOUNTS};
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, Subject};
use crate::digest::Digest;
use crate::entity::Kind;
use crate::error::Refusal;
use crate::id::OrganizationId;
use crate::invitation::{discard, invitation_for};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::passcode::TimeStep;

/// Creates an account that can log in immediately, in place of an expired invitation of the organization for the address.
///
/// # Errors
/// - [`Refusal::NoOrganization`]: the organization does not exist.
/// - [`Refusal::AddressTaken`]: the address belongs to an account of any organization, or to an open invitation of this one.
/// - [`ACCOUNT_LIMIT_REACHED`]: the organization has the maximum number of accounts and invitations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateAccount {
    /// Its rights.
    pub grant: AccountRights,
    /// Its password and TOTP secret.
    pub secrets: AccountSecrets,
    /// Digests of its recovery codes.
    pub recovery_codes: Vec<Digest>,
}

impl Operation for CreateAccount {
    type Outcome = ();
    /// Runs alone, because an address is unique in the instance: two shared transactions could wait for each other.
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let (rows, organization) = (unit.rows(), self.grant.organization);
        rows.lock(organization).await?;
        unit.authorize().await?;
        if !unit.principal().reaches(organization) || unit.organization(organization).await?.is_none() {
            return Err(Refusal::NoOrganization.into());
        }
        let invited = invitation_for(unit, &self.grant.email, organization).await?;
        if invited.as_ref().is_some_and(|invited| invited.is_open(unit.now())) {
            return Err(Refusal::AddressTaken.into());
        }
        require_room(unit, organization).await?;
        if let Some(expired) = invited {
            discard(unit, (organization, expired.grant.account)).await?;
        }
        let secrets = (&self.secrets, &*self.recovery_codes);
        if !insert_account(unit, &self.grant, secrets, TimeStep::NONE).await? {
            return Err(Refusal::AddressTaken.into());
        }
        unit.record(Some(organization), AuditAction::AccountCreated, created(&self.grant)).await
    }
}

/// Stores a new account. Returns `false` if another one has its address.
pub(crate) async fn insert_account(
    unit: &Unit<'_>,
    grant: &AccountRights,
    (secrets, recovery_codes): (&AccountSecrets, &[Digest]),
    last_step: TimeStep,
) -> Result<bool, Failure> {
    let account = Account::new(grant.clone(), secrets.id, unit.now());
    let place @ (organization, id) = account.place();
    match unit.insert(organization, *id.as_uuid(), &account).await {
        Err(Failure::Refused(Refusal::NameTaken)) => return Ok(false),
        inserted => inserted?,
    }
    unit.insert(organization, *id.as_uuid(), secrets).await?;
    unit.rows().insert_account(place, last_step).await?;
    unit.rows().replace_recovery_codes(place, recovery_codes).await?;
    Ok(true)
}

/// Returns what the entry about a new account states.
pub(crate) fn created(grant: &AccountRights) -> Affected {
    let role = AuditChange::new(ChangedField::Role, None, Some(grant.role.to_string()));
    Affected::from(Subject::Account(grant.account)).changing([role])
}

/// Checks that an organization may have one more account or invitation.
pub(crate) async fn require_room(unit: &Unit<'_>, organization: OrganizationId) -> Result<(), Failure> {
    let accounts = unit.rows().count_entities(organization, Kind::Account).await?;
    let invitations = unit.rows().count_entities(organization, Kind::Invitation).await?;
    if accounts + invitations < MAX_ACCOUNTS { Ok(()) } else { Err(ACCOUNT_LIMIT_REACHED.into()) }
}
