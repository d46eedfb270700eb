//! Confirmation of an enrolment.

use super::find::open;
use super::{EnrolmentDraft, discard};
use crate::account::{Account, created, insert_account, put};
use crate::audit::{Actor, Affected, AuditAction, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{AccountId, OrganizationId, SecretsId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::passcode::TimeStep;

/// Creates an account from an invitation and its draft, or gives the re-enrolled account the password, TOTP secret and
/// recovery codes of the draft. Deletes the invitation with its code. There is no principal yet: the enrolment code
/// authorizes the change.
///
/// # Errors
/// - [`Refusal::InvalidEnrolment`]: the invitation was deleted or has expired, its organization is not active, the draft was
///   replaced, or the account to re-enrol has secrets.
/// - [`Refusal::AddressInUse`]: an invitation of another organization has created an account for the address in the
///   meantime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmEnrolment {
    /// The organization.
    pub organization: OrganizationId,
    /// The account to create or to re-enrol.
    pub account: AccountId,
    /// Whether the account is re-enrolled.
    pub re_enrols: bool,
    /// Digest of the enrolment code, which the invitation must still have.
    pub code: Digest,
    /// ID of the secrets of the draft whose TOTP secret was confirmed.
    pub secrets: SecretsId,
    /// Time step whose code confirmed the enrolment. It is marked as used, so that this code cannot log in.
    pub step: TimeStep,
}

impl Operation for ConfirmEnrolment {
    type Outcome = ();
    /// One that creates an account runs alone, because an address is unique in the instance: two shared transactions could
    /// wait for each other.
    const ACCESS: Access<Self> = Access::Write(|operation| operation.re_enrols.then_some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let Self { organization, account, re_enrols, step, .. } = *self;
        let (rows, place, id) = (unit.rows(), (organization, account), *account.as_uuid());
        if !re_enrols {
            rows.lock(organization).await?;
        }
        let invitation = open(unit, place, &self.code).await?.filter(|found| found.re_enrols() == re_enrols);
        let draft = unit.find::<EnrolmentDraft>(organization, id).await?;
        let draft = draft.filter(|draft| draft.secrets.id == self.secrets);
        let current = unit.find::<Account>(organization, id).await?;
        let (Some(invitation), Some(draft)) = (invitation, draft) else { return Err(Refusal::InvalidEnrolment.into()) };
        let grant = invitation.enrolled();
        let enrolled = match (re_enrols, current) {
            (false, None) => created(&grant),
            // Only an old invitation that SQL put back leads to an account with secrets, which stay.
            (true, Some(current)) if current.secrets.is_none() => {
                unit.replace(&current, &current.re_enrolled(draft.secrets.id, unit.now())).await?;
                put(unit, place, &draft.secrets).await?;
                rows.reset_passcodes(place, step).await?;
                rows.replace_recovery_codes(place, &draft.recovery_codes).await?;
                Affected::from(Subject::Account(account))
            }
            _ => return Err(Refusal::InvalidEnrolment.into()),
        };
        discard(unit, place).await?;
        if !re_enrols && !insert_account(unit, &grant, (&draft.secrets, &draft.recovery_codes), step).await? {
            return Err(Refusal::AddressInUse.into());
        }
        let affected = enrolled.and(RecordedRow::Invitation, RowState::Gone);
        unit.record_as(Actor::Unknown, Some(organization), AuditAction::AccountEnrolled, affected).await
    }
}
