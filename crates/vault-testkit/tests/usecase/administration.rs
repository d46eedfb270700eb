//! What admins and operators do with accounts.

use super::service::{Service, exposed};
use vault_core::account::AccountState;
use vault_core::audit::{Actor, AuditAction};
use vault_core::notice::NoticeCode;
use vault_core::port::AccountScope;
use vault_core::principal::Denial;
use vault_core::role::Role;
use vault_core::usecase::{AccountCommand, ChangeAccountError, InviteError, Inviter, ListAccountsError, ListedSession};

#[tokio::test]
async fn an_admin_changes_its_organizations_accounts() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let stranger = service.person("Other", "stranger", Role::Viewer).await;
    let (session, janes) = (service.log_in(&admin).await, service.log_in(&jane).await);

    let change = service.change();
    let changed = change.as_admin(&session, jane.account, AccountCommand::SetRole(Role::Editor)).await.unwrap();
    assert_eq!((changed.account.grant.role, changed.account.grant.account), (Role::Editor, jane.account));
    assert!(changed.account.last_login_at.is_some());
    assert!(!service.lives(&janes).await);
    assert_eq!(service.audited(AuditAction::AccountRoleChanged), (1, Some(Actor::from(&session))));
    let changed = change.as_admin(&session, jane.account, AccountCommand::Disable).await.unwrap();
    assert_eq!(changed.account.grant.state, AccountState::Disabled);
    assert!(service.try_log_in("jane@example.com", service.proof(&jane)).await.is_err());
    change.as_admin(&session, jane.account, AccountCommand::Enable).await.unwrap();
    change.as_admin(&session, jane.account, AccountCommand::Delete).await.unwrap();

    for account in [stranger.account, jane.account] {
        let missing = change.as_admin(&session, account, AccountCommand::Delete).await;
        assert!(matches!(missing, Err(ChangeAccountError::NotFound)));
    }
    service.log_in(&stranger).await;
}

#[tokio::test]
async fn nobody_but_admins_administers() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    for role in [Role::Editor, Role::Viewer] {
        let person = service.person("Acme", role.as_str(), role).await;
        let session = service.log_in(&person).await;
        let changed = service.change().as_admin(&session, admin.account, AccountCommand::Delete).await;
        assert!(matches!(changed, Err(ChangeAccountError::InsufficientRole)));
        let own = service.change().as_admin(&session, person.account, AccountCommand::SetRole(Role::Admin)).await;
        assert!(matches!(own, Err(ChangeAccountError::InsufficientRole)));
        let listed = service.list().run(AccountScope::Session(session.clone())).await;
        assert!(matches!(listed, Err(ListAccountsError::InsufficientRole)));
        let invited = service.invite(1).run(Inviter::Session(session), "new@example.com", Role::Admin).await;
        assert!(matches!(invited, Err(InviteError::InsufficientRole)));
    }
    let session = service.log_in(&admin).await;
    for command in
        [AccountCommand::SetPassword("a new password".into()), AccountCommand::ResetPasscode, AccountCommand::Unlock]
    {
        let refused = service.change().as_admin(&session, admin.account, command).await;
        assert!(matches!(refused, Err(ChangeAccountError::InsufficientRole)), "an owner's and operators' matter");
    }
    service.sessions().end(&session, session.session).await.unwrap();
    let ended = Denial::SessionEnded;
    let changed = service.change().as_admin(&session, admin.account, AccountCommand::Delete).await;
    assert!(matches!(changed, Err(ChangeAccountError::Principal(refusal)) if refusal == ended));
    let listed = service.list().run(AccountScope::Session(session)).await;
    assert!(matches!(listed, Err(ListAccountsError::Principal(refusal)) if refusal == ended));
}

#[tokio::test]
async fn the_last_active_admin_stays_unless_an_operator_says_so() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let session = service.log_in(&admin).await;
    for command in [AccountCommand::SetRole(Role::Viewer), AccountCommand::Disable, AccountCommand::Delete] {
        let refused = service.change().as_admin(&session, admin.account, command).await;
        assert!(matches!(refused, Err(ChangeAccountError::LastAdmin)));
    }
    assert!(service.lives(&session).await);
    let second = service.person("Acme", "second", Role::Admin).await;
    service.change().as_admin(&session, second.account, AccountCommand::SetRole(Role::Viewer)).await.unwrap();
    service.change().as_operator("admin@example.com", AccountCommand::Disable).await.unwrap();
}

#[tokio::test]
async fn of_an_invitation_only_the_role_changes() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let session = service.log_in(&admin).await;
    let inviter = Inviter::Session(session.clone());
    let invited = service.invite(1).run(inviter, "jane@example.com", Role::Viewer).await.unwrap();
    let jane = invited.grant.account;
    for command in [AccountCommand::Disable, AccountCommand::Enable] {
        let refused = service.change().as_admin(&session, jane, command).await;
        assert!(matches!(refused, Err(ChangeAccountError::OnlyInvited)));
    }
    let changed = service.change().as_admin(&session, jane, AccountCommand::SetRole(Role::Editor)).await.unwrap();
    assert_eq!((changed.account.grant.role, changed.account.grant.state), (Role::Editor, AccountState::Invited));
    service.enrol().run(invited.code.text(), "a long new password".into()).await.unwrap();

    service.store.tamper_with_invitation(jane, |row| row.grant.role = Role::Admin);
    let signed = service.change().as_operator("jane@example.com", AccountCommand::SetRole(Role::Admin)).await;
    assert!(matches!(signed, Err(ChangeAccountError::Damaged)), "a damaged row is not signed anew");
    service.change().as_admin(&session, jane, AccountCommand::Delete).await.unwrap();
    assert_eq!(service.audited(AuditAction::InvitationDeleted), (1, Some(Actor::from(&session))));
    assert!(service.enrol().run(invited.code.text(), "a long new password".into()).await.is_err());
    service.person("Other", "jane", Role::Viewer).await;
}

#[tokio::test]
async fn a_damaged_account_is_not_signed_anew() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let session = service.log_in(&admin).await;
    service.store.tamper_with_grant(jane.account, |grant| grant.role = Role::Admin);
    let signed = service.change().as_admin(&session, jane.account, AccountCommand::SetRole(Role::Editor)).await;
    assert!(matches!(signed, Err(ChangeAccountError::Damaged)));
    assert!(service.saw_damage("accounts"));
}

#[tokio::test]
async fn an_owner_is_told_what_an_operator_did() {
    let service = Service::new().await;
    let mut jane = service.person("Acme", "jane", Role::Viewer).await;
    let first = service.log_in(&jane).await;
    let password = "another long password";
    service.change().as_operator("jane@example.com", AccountCommand::SetPassword(password.into())).await.unwrap();
    assert!(!service.lives(&first).await);
    service.clock.advance_seconds(60);
    let reset = service.change().as_operator("jane@example.com", AccountCommand::ResetPasscode).await.unwrap();
    jane.password = password.to_owned();
    jane.secret = exposed(&reset.passcode.unwrap().0);
    let session = service.log_in(&jane).await;
    let own = service.own_account().run(&session).await.unwrap();
    let codes: Vec<_> = own.notices.iter().map(|notice| notice.code).collect();
    assert_eq!(codes, [NoticeCode::PasscodeResetByOperator, NoticeCode::PasswordChangedByOperator]);
    assert!(own.notices.iter().all(|notice| notice.at.is_some()));
    let listed = service.sessions().list(&session).await.unwrap();
    assert!(matches!(&listed[..], [ListedSession { current: true, .. }]));
}
