//! Invitations as they are found by their code or address.

use super::{EnrolmentDraft, Invitation};
use crate::account::Account;
use crate::digest::Digest;
use crate::email::EmailAddress;
use crate::entity::{EntityKey, Index, Kind, OF_INSTANCE, Opened};
use crate::id::{AccountId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::organization::OrganizationState;
use crate::port::{AccountPlace, LookupRow};
use uuid::Uuid;

/// Number of rows per read of [`invitations_for`].
const STEP: usize = 100;

/// An invitation that can be accepted now, as found by its code.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenInvitation {
    /// The invitation.
    pub invitation: Opened<Invitation>,
    /// Address of the account that created the invitation, if it still exists.
    pub invited_by: Option<EmailAddress>,
    /// The newest draft, if any.
    pub draft: Option<EnrolmentDraft>,
}

/// Finds the invitation with this code, if it is open and its organization is active. The code is the authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindInvitation(pub Digest);

impl Operation for FindInvitation {
    type Outcome = Option<OpenInvitation>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<OpenInvitation>, Failure> {
        let (rows, code) = (unit.rows(), Invitation::under(&self.0));
        let Some((organization, id)) = rows.find_anywhere(code.index, &code.value).await? else { return Ok(None) };
        let place = (organization, AccountId::from_uuid(id));
        let Some(invitation) = open(unit, place, &self.0).await? else { return Ok(None) };
        let draft = unit.find::<EnrolmentDraft>(organization, id).await?.map(Opened::into_value);
        let inviter = match invitation.invited_by {
            Some(id) => rows.entity(EntityKey { organization, kind: Kind::Account, id: *id.as_uuid() }).await?,
            None => None,
        };
        // One that does not open does not prevent the enrolment.
        let inviter = inviter.map(|row| unit.open_or_report::<Account>(&row)).transpose()?.flatten();
        let invited_by = inviter.map(|inviter| inviter.into_value().grant.email);
        Ok(Some(OpenInvitation { invitation, invited_by, draft }))
    }
}

/// Returns an invitation, if this code can accept it now.
pub(super) async fn open(
    unit: &Unit<'_>,
    (organization, account): AccountPlace,
    code: &Digest,
) -> Result<Option<Opened<Invitation>>, Failure> {
    if unit.rows().organization_state(organization).await? != Some(OrganizationState::Active) {
        return Ok(None);
    }
    let found = unit.find::<Invitation>(organization, *account.as_uuid()).await?;
    Ok(found.filter(|found| found.code == *code && found.is_open(unit.now())))
}

/// Returns the invitation of an organization for an address, also if it has expired.
pub(crate) async fn invitation_for(
    unit: &Unit<'_>,
    email: &EmailAddress,
    organization: OrganizationId,
) -> Result<Option<Opened<Invitation>>, Failure> {
    let address = Invitation::at(email, organization);
    let Some((of, id)) = unit.rows().find_anywhere(address.index, &address.value).await? else { return Ok(None) };
    let found = unit.find::<Invitation>(of, id).await?;
    Ok(found.filter(|found| found.lookups().contains(&address)))
}

/// Returns the invitations for an address in all organizations.
pub(crate) async fn invitations_for(unit: &Unit<'_>, email: &EmailAddress) -> Result<Vec<AccountPlace>, Failure> {
    let (index, start) = (Index::InvitedAddress.as_str(), format!("{email} "));
    let mut after =
        LookupRow { organization: OF_INSTANCE, index: index.to_owned(), value: start.clone(), id: Uuid::nil() };
    let mut places = Vec::new();
    loop {
        let rows = unit.rows().global_lookups_after(Some(after.clone()), STEP).await?;
        let is_last = rows.len() < STEP;
        for row in rows {
            if row.index != index || !row.value.starts_with(&start) {
                return Ok(places);
            }
            places.push((row.organization, AccountId::from_uuid(row.id)));
            after = row;
        }
        if is_last {
            return Ok(places);
        }
    }
}

/// Removes an invitation, which need not open, with its draft. Returns `false` if there is none. The caller records it.
pub(crate) async fn discard(unit: &Unit<'_>, (organization, account): AccountPlace) -> Result<bool, Failure> {
    let id = *account.as_uuid();
    unit.remove::<EnrolmentDraft>(organization, id).await?;
    Ok(unit.rows().remove_entity(EntityKey { organization, kind: Kind::Invitation, id }).await?)
}
