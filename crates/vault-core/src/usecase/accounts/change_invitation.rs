//! Changes of an invitation's role, and its deletion.

use super::{AccountCommand, Accounts, ChangedAccount};
use crate::account::{AccountRights, ListedAccount};
use crate::error::{Error, Refusal};
use crate::invitation::{ChangeInvitation, InvitationChange, StoredInvitation};
use crate::principal::Principal;

impl Accounts {
    pub(super) async fn change_invitation(
        &self,
        principal: &Principal,
        current: StoredInvitation,
        command: &AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        let (organization, account) = (current.invitation.grant.organization, current.invitation.grant.account);
        let (change, listed) = match command {
            // Deletion does not require a valid row, because it grants nothing.
            AccountCommand::Delete => (InvitationChange::Delete, current.listed()),
            AccountCommand::SetRole(role) => {
                self.digester.load_keys(&[current.digest.key]).await?;
                if !current.mac_is_valid(&*self.digester) {
                    self.report_damage("invitations", account);
                    return Err(Refusal::Damaged { table: "invitations", id: account.to_string() }.into());
                }
                let grant = AccountRights { role: *role, ..current.invitation.grant.clone() };
                (InvitationChange::Role(*role), ListedAccount { grant, ..current.listed() })
            }
            _ => return Err(Refusal::OnlyInvited.into()),
        };
        if change == InvitationChange::Delete || listed.grant != current.invitation.grant {
            let change = ChangeInvitation { organization, account, version: current.version, change };
            self.operations.run(&self.environment, principal, change).await?;
        }
        Ok(ChangedAccount { account: listed, enrolment: None })
    }
}
