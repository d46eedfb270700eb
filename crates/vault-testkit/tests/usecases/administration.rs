//! Administration of accounts by admins and operators.

use super::service::Service;
use vault_core::account::AccountState;
use vault_core::audit::{Actor, AuditAction, AuditChange, ChangedField};
use vault_core::principal::Denial;
use vault_core::role::Role;
use vault_core::usecase::AccountCommand;
use vault_core::{Error, Refusal};

#[tokio::test]
async fn admin_changes_its_organizations_accounts() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let stranger = service.person("Other", "stranger", Role::Viewer).await;
    let (session, janes) = (service.log_in(&admin).await, service.log_in(&jane).await);

    let changed = service.as_admin(&session, jane.account, AccountCommand::SetRole(Role::Editor)).await.unwrap();
    assert_eq!((changed.account.grant.role, changed.account.grant.account), (Role::Editor, jane.account));
    assert!(changed.account.logins.last_login_at.is_some());
    assert!(!service.lives(&janes).await);
    assert_eq!(service.audited(AuditAction::AccountRoleChanged), (1, Some(Actor::from(&session))));
    let changed = service.as_admin(&session, jane.account, AccountCommand::Disable).await.unwrap();
    assert_eq!(changed.account.grant.state, AccountState::Disabled);
    assert!(service.try_log_in("jane@example.com", service.proof(&jane)).await.is_err());
    service.as_admin(&session, jane.account, AccountCommand::Enable).await.unwrap();
    service.as_admin(&session, jane.account, AccountCommand::Unlock).await.unwrap();
    assert_eq!(service.audited(AuditAction::AccountUnlocked), (1, Some(Actor::from(&session))));
    service.as_admin(&session, jane.account, AccountCommand::Delete).await.unwrap();

    for account in [stranger.account, jane.account] {
        for command in [AccountCommand::Delete, AccountCommand::Unlock, AccountCommand::ReEnrol] {
            let missing = service.as_admin(&session, account, command).await;
            assert!(matches!(missing, Err(Error::Refused(Refusal::NotFound))));
        }
    }
    service.log_in(&stranger).await;
}

#[tokio::test]
async fn only_admins_administer() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    for role in [Role::Editor, Role::Viewer] {
        let person = service.person("Acme", role.as_str(), role).await;
        let session = service.log_in(&person).await;
        let changed = service.as_admin(&session, admin.account, AccountCommand::Delete).await;
        assert!(matches!(changed, Err(Error::Denied(Denial::InsufficientRole))));
        let own = service.as_admin(&session, person.account, AccountCommand::SetRole(Role::Admin)).await;
        assert!(matches!(own, Err(Error::Denied(Denial::InsufficientRole))));
        let listed = service.listed(&session).await;
        assert!(matches!(listed, Err(Error::Denied(Denial::InsufficientRole))));
        let invited = service.invites(&session, "new@example.com", Role::Admin).await;
        assert!(matches!(invited, Err(Error::Denied(Denial::InsufficientRole))));
    }
    let session = service.log_in(&admin).await;
    service.accounts.end_session(&session, session.session).await.unwrap();
    let ended = Denial::SessionEnded;
    let changed = service.as_admin(&session, admin.account, AccountCommand::Delete).await;
    assert!(matches!(changed, Err(Error::Denied(refusal)) if refusal == ended));
    let listed = service.listed(&session).await;
    assert!(matches!(listed, Err(Error::Denied(refusal)) if refusal == ended));
}

#[tokio::test]
async fn only_role_of_invitation_can_change() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let session = service.log_in(&admin).await;
    let invited = service.invites(&session, "jane@example.com", Role::Viewer).await.unwrap();
    let jane = invited.grant.account;
    for command in [AccountCommand::Disable, AccountCommand::Enable] {
        let refused = service.as_admin(&session, jane, command).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::OnlyInvited))));
    }
    let changed = service.as_admin(&session, jane, AccountCommand::SetRole(Role::Editor)).await.unwrap();
    assert_eq!((changed.account.grant.role, changed.account.grant.state), (Role::Editor, AccountState::Invited));
    service.accounts.enrol(invited.code.text(), "a long new password".into()).await.unwrap();

    service.store.tamper_with_invitation(jane, |row| row.grant.role = Role::Admin);
    let signed = service.as_operator("jane@example.com", AccountCommand::SetRole(Role::Admin)).await;
    assert!(matches!(signed, Err(Error::Refused(Refusal::Damaged { .. }))), "a damaged row is not signed again");
    service.as_admin(&session, jane, AccountCommand::Delete).await.unwrap();
    assert_eq!(service.audited(AuditAction::InvitationDeleted), (1, Some(Actor::from(&session))));
    assert!(service.accounts.enrol(invited.code.text(), "a long new password".into()).await.is_err());
    service.person("Other", "jane", Role::Viewer).await;
}

#[tokio::test]
async fn damaged_account_is_not_resigned() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let session = service.log_in(&admin).await;
    service.store.tamper_with_account(jane.account, |row| row.grant.role = Role::Admin);
    let signed = service.as_admin(&session, jane.account, AccountCommand::SetRole(Role::Editor)).await;
    assert!(matches!(signed, Err(Error::Refused(Refusal::Damaged { .. }))));
    assert!(service.saw_damage("accounts"));
}

/// A change to the current value ends no session and is not recorded. Other changes are recorded with the old value.
#[tokio::test]
async fn unchanged_account_is_not_written() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let (session, janes) = (service.log_in(&admin).await, service.log_in(&jane).await);
    for command in [AccountCommand::SetRole(Role::Viewer), AccountCommand::Enable] {
        let changed = service.as_admin(&session, jane.account, command).await.unwrap();
        assert_eq!((changed.account.grant.role, changed.account.grant.state), (Role::Viewer, AccountState::Active));
    }
    assert!(service.lives(&janes).await);
    assert_eq!(service.audited(AuditAction::AccountRoleChanged).0, 0);
    assert_eq!(service.audited(AuditAction::AccountEnabled).0, 0);
    service.as_admin(&session, jane.account, AccountCommand::SetRole(Role::Editor)).await.unwrap();
    assert!(!service.lives(&janes).await);
    service.as_admin(&session, jane.account, AccountCommand::Disable).await.unwrap();
    service.as_admin(&session, jane.account, AccountCommand::Disable).await.unwrap();
    let changes = |action| {
        let records = service.store.audit().into_iter().filter(move |record| record.action == action);
        records.map(|record| record.changes).collect::<Vec<_>>()
    };
    let change = |field, from: &str, to: &str| vec![vec![AuditChange::new(field, Some(from.into()), Some(to.into()))]];
    assert_eq!(changes(AuditAction::AccountRoleChanged), change(ChangedField::Role, "viewer", "editor"));
    assert_eq!(changes(AuditAction::AccountDisabled), change(ChangedField::State, "active", "disabled"));
    // The same applies to an invitation.
    let invited = service.invites(&session, "new@example.com", Role::Viewer).await.unwrap().grant.account;
    service.as_admin(&session, invited, AccountCommand::SetRole(Role::Viewer)).await.unwrap();
    assert_eq!(service.audited(AuditAction::InvitationChanged).0, 0);
    service.as_admin(&session, invited, AccountCommand::SetRole(Role::Admin)).await.unwrap();
    assert_eq!(changes(AuditAction::InvitationChanged), change(ChangedField::Role, "viewer", "admin"));
}
