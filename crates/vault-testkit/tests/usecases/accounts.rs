//! Changes of accounts, by their owners and by admins.

use super::service::{PASSWORD, Service};
use vault_core::account::AccountState;
use vault_core::audit::{AuditAction, AuditChange, ChangedField};
use vault_core::field::FieldCode;
use vault_core::principal::Denial;
use vault_core::role::Role;
use vault_core::usecase::{AccountCommand, CreateAccountRequest, LogInRequest, OwnerProof};
use vault_core::{Error, Refusal};

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

#[tokio::test]
async fn account_with_used_address_costs_no_hash() {
    let service = Service::new().await;
    service.person("Acme", "jane", Role::Viewer).await;
    service.work.take();
    let request = CreateAccountRequest {
        organization: service.organization_named("Other").await,
        email: "Jane@example.com".to_owned(),
        role: Role::Admin,
        password: Some(PASSWORD.into()),
    };
    let refused = service.accounts.create(request).await.map(drop);
    assert!(matches!(refused, Err(Error::Refused(Refusal::AddressTaken))), "{refused:?}");
    let work = service.work.take();
    assert!(!work.iter().any(|operation| operation.contains("hash")), "{work:?}");
}

#[tokio::test]
async fn session_lifetime_is_capped_by_setting() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let accounts = service.accounts.clone().with_max_ttl(600);
    assert_eq!((accounts.max_ttl(), service.accounts.max_ttl()), (600, 86_400));
    for (ttl, granted) in [(Some(601), None), (Some(600), Some(600)), (None, Some(600))] {
        let OwnerProof { password, passcode, network } = service.proof(&jane);
        let request =
            LogInRequest { email: "jane@example.com".to_owned(), password, passcode, ttl, network, client: None };
        match accounts.log_in(request).await {
            Ok(logged_in) => assert_eq!(Some(logged_in.expires_in), granted),
            Err(Error::Invalid(violations)) => assert_eq!((violations[0].code, granted), (FieldCode::OutOfRange, None)),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Without an active session, no password is hashed.
#[tokio::test]
async fn ended_session_cannot_re_authenticate() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let (session, other) = (service.log_in(&jane).await, service.log_in(&jane).await);
    service.accounts.end_session(&other, session.session).await.unwrap();
    let hashes = service.hasher.verified().len();
    for refused in [
        service.accounts.change_password(&session, service.proof(&jane), "an entirely new one".into()).await,
        service.accounts.replace_passcode(&session, service.proof(&jane)).await.map(drop),
        service.accounts.replace_recovery_codes(&session, service.proof(&jane)).await.map(drop),
        service.accounts.confirm_passcode(&session, &"123456".into()).await,
    ] {
        assert!(matches!(refused, Err(Error::Denied(Denial::SessionEnded))), "{refused:?}");
    }
    assert_eq!(service.hasher.verified().len(), hashes);
}

/// A session's last use is stored to the minute, and written at most once a minute.
#[tokio::test]
async fn last_use_of_a_session_is_shown_to_its_owner() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let (first, second) = (service.log_in(&jane).await, service.log_in(&jane).await);
    let began = service.now();
    let last_used = async || {
        let listed = service.accounts.sessions(&second).await.unwrap();
        listed.into_iter().map(|listed| listed.last_used_at).collect::<Vec<_>>()
    };
    let before = last_used().await;
    service.clock.advance_seconds(600);
    service.used(&first);
    assert_eq!(last_used().await, before, "it is not written on the way of the request");
    service.store.fail_next(vault_core::port::StoreError::Unavailable("away".into()));
    service.accounts.write_session_uses().await.unwrap_err();
    service.accounts.write_session_uses().await.unwrap();
    let minute = |at: vault_core::time::Timestamp| at.as_millis().div_euclid(60_000);
    let after = last_used().await;
    assert_eq!((after[0], minute(after[1])), (before[0], minute(began) + 10));
}
