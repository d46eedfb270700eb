//! Confirmation of an enrolment.

use super::find::open;
use super::{Invitation, discard};
use crate::account::{SignedAccount, insert_account, sign_account};
use crate::audit::{Actor, AuditAction, RecordedRow, RowState, Subject};
use crate::digest::{Digest, RowMac};
use crate::entity::Opened;
use crate::error::Refusal;
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::passcode::TimeStep;

/// Creates an account from an invitation and its draft, or gives the re-enrolled account the password, TOTP secret and
/// recovery codes of the draft. Deletes the invitation with its code. There is no principal yet: the enrolment code
/// authorizes the change.
///
/// # Errors
/// - [`Refusal::Contended`]: the invitation or the re-enrolled account has changed, was deleted or has expired, or its
///   organization is not active.
/// - [`Refusal::AddressInUse`]: an invitation of another organization has created an account for the address in the
///   meantime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmEnrolment {
    /// Fields of the new row: the rights of the invitation with state active, or those of the re-enrolled account, and
    /// the IDs of the draft's password and TOTP secret, which must be unchanged.
    pub signed: SignedAccount,
    /// Version of the re-enrolled account as read, which must be unchanged. `None` if an account is created.
    pub account_version: Option<i64>,
    /// Digest of the enrolment code, which the invitation must still have.
    pub code: Digest,
    /// Version of the invitation as read, which must be unchanged.
    pub version: i64,
    /// MAC of the draft as read, which must be unchanged.
    pub draft: RowMac,
    /// Time step whose code confirmed the enrolment. It is marked as used, so that this code cannot log in.
    pub step: TimeStep,
}

impl Operation for ConfirmEnrolment {
    type Outcome = ();
    const ACCESS: Access = Access::Write;

    /// One that creates an account runs alone, because an address is unique in the instance: two shared transactions could
    /// wait for each other.
    fn organization(&self) -> Option<OrganizationId> {
        self.account_version.map(|_| self.signed.grant.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let (rows, now, Self { signed, step, .. }) = (unit.rows(), unit.now(), self);
        let place @ (organization, account) = (signed.grant.organization, signed.grant.account);
        let re_enrols = self.account_version.is_some();
        let current = match re_enrols {
            true => rows.account(place).await?.map(|(current, _)| current.version),
            false => {
                rows.lock(organization).await?;
                None
            }
        };
        let invitation = open(unit, place, &self.code).await?;
        let as_read = |found: &Opened<Invitation>| found.version() == self.version && found.re_enrols() == re_enrols;
        let is_as_read = invitation.as_ref().is_some_and(as_read) && current == self.account_version;
        let draft = rows.draft(place).await?.filter(|draft| is_as_read && draft.digest == self.draft);
        let Some(draft) = draft else { return Err(Refusal::Contended.into()) };
        if !re_enrols && !rows.enter_address(&signed.grant.email, place).await? {
            return Err(Refusal::AddressInUse.into());
        }
        discard(unit, place).await?;
        let enrolled = if re_enrols {
            rows.set_password(place, &draft.password.blob).await?;
            rows.enrol_seed(place, &draft.seed, *step, now).await?;
            rows.replace_recovery_codes(place, &draft.recovery_codes).await?;
            Subject::Account(account).left(RecordedRow::Account, sign_account(unit, signed).await?)
        } else {
            insert_account(unit, signed, (draft.password, draft.seed, draft.recovery_codes), *step).await?
        };
        let affected = enrolled.and(RecordedRow::Invitation, RowState::Gone);
        unit.record_as(Actor::Unknown, Some(organization), AuditAction::AccountEnrolled, affected).await
    }
}
