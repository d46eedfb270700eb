//! Changes of an invitation's role, and its deletion.

use super::{AccountCommand, Accounts, ChangedAccount};
use crate::error::{Error, Refusal};
use crate::invitation::{ChangeInvitation, Invitation, InvitationChange};
use crate::principal::Principal;

impl Accounts {
    pub(super) async fn change_invitation(
        &self,
        principal: &Principal,
        current: &Invitation,
        command: &AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        let (organization, account) = (current.grant.organization, current.grant.account);
        let change = match command {
            AccountCommand::Delete => InvitationChange::Delete,
            AccountCommand::SetRole(role) => InvitationChange::Role(*role),
            _ => return Err(Refusal::OnlyInvited.into()),
        };
        let change = ChangeInvitation { organization, account, change };
        let account = self.operations.run(&self.environment, principal, change).await?;
        Ok(ChangedAccount { account, enrolment: None })
    }
}
