//! Changes of an invitation's role, and its deletion.

use super::change::changes;
use super::{AccountCommand, Accounts, ChangedAccount};
use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::error::{Error, Refusal};
use crate::invitation::StoredInvitation;
use crate::port::{ChangeInvitation, Event, InvitationChange};
use crate::principal::Principal;

impl Accounts {
    pub(super) async fn change_invitation(
        &self,
        principal: &Principal,
        current: StoredInvitation,
        command: &AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        let (organization, account) = (current.invitation.grant.organization, current.invitation.grant.account);
        let (change, action, changed) = match command {
            // Deletion does not require a valid row, because it grants nothing.
            AccountCommand::Delete => (InvitationChange::Delete, AuditAction::InvitationDeleted, current.listed()),
            AccountCommand::SetRole(role) => {
                self.digester.load_keys(&[current.digest.key]).await?;
                if !current.mac_is_valid(&*self.digester) {
                    self.report_damage("invitations", account);
                    return Err(Refusal::Damaged { table: "invitations", id: account.to_string() }.into());
                }
                let changed = current.with_role(*role, &*self.digester);
                let listed = changed.listed();
                if changed.invitation.grant == current.invitation.grant {
                    return Ok(ChangedAccount { account: listed, enrolment: None });
                }
                (InvitationChange::Role(changed), AuditAction::InvitationChanged, listed)
            }
            _ => return Err(Refusal::OnlyInvited.into()),
        };
        let state = match &change {
            InvitationChange::Role(changed) => changed.state(&*self.digester),
            InvitationChange::Delete => RowState::Gone,
        };
        let changes = match &change {
            InvitationChange::Role(changed) => changes(&current.invitation.grant, &changed.invitation.grant),
            InvitationChange::Delete => Vec::new(),
        };
        let payload = ChangeInvitation { organization, account, version: current.version, change };
        let affected = Subject::Account(account).left(RecordedRow::Invitation, state).changing(changes);
        let command = self.environment.command(principal, Some(organization), action, affected, payload);
        let recorded = Event::recorded(&command.audit);
        self.store.change_invitation(command).await?;
        self.environment.emit(recorded);
        Ok(ChangedAccount { account: changed, enrolment: None })
    }
}
