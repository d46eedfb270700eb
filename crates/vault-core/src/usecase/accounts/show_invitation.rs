//! Invitations as their enrolment code shows them, before they are accepted.

use super::Accounts;
use crate::email::EmailAddress;
use crate::error::Error;
use crate::invitation::OpenInvitation;
use crate::organization::OrganizationName;
use crate::time::Timestamp;
use secrecy::SecretString;

/// An open invitation, as shown to the holder of its enrolment code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownInvitation {
    /// Address of the future or re-enrolled account.
    pub email: EmailAddress,
    /// Name of the organization.
    pub organization: OrganizationName,
    /// Address of the account that created the invitation. `None` for an operator, and if the account was deleted.
    pub invited_by: Option<EmailAddress>,
    /// Time from which it can no longer be accepted.
    pub expires_at: Timestamp,
}

impl Accounts {
    /// Returns the open invitation with `code`. Changes and records nothing.
    ///
    /// # Errors
    /// [`Refusal::InvalidEnrolment`](crate::Refusal::InvalidEnrolment), as for [`Accounts::enrol`].
    pub async fn show_invitation(&self, code: &SecretString) -> Result<ShownInvitation, Error> {
        let OpenInvitation { invitation, invited_by, .. } = self.open_invitation(code).await?;
        let invitation = invitation.into_value();
        Ok(ShownInvitation {
            organization: self.organization(invitation.grant.organization).await?.name,
            email: invitation.grant.email,
            invited_by,
            expires_at: invitation.expires_at,
        })
    }
}
