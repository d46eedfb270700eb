//! The invitation of an enrolment code.

use super::{EnrolmentDraft, StoredInvitation};
use crate::account::SignedAccount;
use crate::digest::{Digest, RowMac};
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::organization::OrganizationState;

/// An invitation that can be accepted now, as found by its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenInvitation {
    /// The invitation.
    pub stored: StoredInvitation,
    /// Account that created the invitation, if it still exists, and the MAC of its row.
    pub invited_by: Option<(SignedAccount, RowMac)>,
    /// The newest draft, if any.
    pub draft: Option<EnrolmentDraft>,
    /// Account to re-enrol with its current row and the MAC of that row. `None` if the invitation creates an account.
    pub account: Option<(SignedAccount, RowMac)>,
}

/// Finds the invitation with this code, if it is open and its organization is active. The code is the authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindInvitation(pub Digest);

impl Operation for FindInvitation {
    type Outcome = Option<OpenInvitation>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<OpenInvitation>, Failure> {
        let rows = unit.rows();
        let Some(stored) = rows.invitation_by_code(&self.0).await? else { return Ok(None) };
        let place @ (organization, _) = (stored.invitation.grant.organization, stored.invitation.grant.account);
        if open(unit, place, &self.0).await?.is_none() {
            return Ok(None);
        }
        let draft = rows.draft(place).await?;
        let account = match stored.invitation.re_enrols() {
            true => rows.account(place).await?,
            false => None,
        };
        let invited_by = match stored.invitation.invited_by {
            Some(inviter) => rows.account((organization, inviter)).await?,
            None => None,
        };
        Ok(Some(OpenInvitation { stored, invited_by, draft, account }))
    }
}

/// Returns an invitation, if this code can accept it now.
pub(super) async fn open(
    unit: &Unit<'_>,
    place: crate::port::AccountPlace,
    code: &Digest,
) -> Result<Option<StoredInvitation>, Failure> {
    if unit.rows().organization_state(place.0).await? != Some(OrganizationState::Active) {
        return Ok(None);
    }
    let stored = unit.rows().invitation(place).await?;
    Ok(stored.filter(|stored| stored.invitation.code == *code && stored.invitation.is_open(unit.now())))
}
