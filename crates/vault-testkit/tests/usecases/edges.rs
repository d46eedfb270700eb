//! Limits of the rules for logins, sessions and passcodes.

use super::service::{PASSWORD, Service, network};
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::field::FieldCode;
use vault_core::lockout::FREE_ATTEMPTS;
use vault_core::password::MAX_BYTES;
use vault_core::port::{Event, LoginRefusal};
use vault_core::principal::Denial;
use vault_core::role::Role;
use vault_core::usecase::{CreateAccountRequest, LogInRequest, OwnerProof};
use vault_core::{Error, Refusal};

/// A password of maximum length works. A longer one is rejected without hashing.
#[tokio::test]
async fn longest_password_logs_in() {
    let service = Service::new().await;
    let request = |email: &str, length| {
        let password = "p0-".repeat(length).split_off(2 * length);
        assert_eq!(password.len(), length);
        (email.to_owned(), password)
    };
    let (email, password) = request("long@example.com", MAX_BYTES);
    let created = service
        .accounts
        .create(CreateAccountRequest {
            organization: service.organization_named("Acme").await,
            email: email.clone(),
            role: Role::Viewer,
            password: Some(password.as_str().into()),
        })
        .await
        .unwrap();
    let passcode = || service.code(&super::service::exposed(&created.passcode));
    let proof = |password: &str| OwnerProof { password: password.into(), passcode: passcode(), network: network() };
    for longer in [MAX_BYTES + 1, MAX_BYTES + 2, 2 * MAX_BYTES] {
        let (_, longer) = request("", longer);
        let refused = service.try_log_in(&email, proof(&longer)).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::InvalidLogin))));
        let impossible =
            |event| matches!(event, Event::LoginRefused { refusal: LoginRefusal::Impossible, account: None, .. });
        assert!(service.events.take().into_iter().any(impossible));
    }
    assert_eq!(service.hasher.verified(), []);
    service.try_log_in(&email, proof(&password)).await.unwrap();
}

/// A login ends a lockout only if there was one: the last free attempt is followed by none.
#[tokio::test]
async fn login_at_last_free_attempt_ends_no_lockout() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    for (wrong, unlocks) in [(FREE_ATTEMPTS - 1, false), (FREE_ATTEMPTS, true)] {
        for _ in 0..wrong {
            let proof =
                OwnerProof { password: "a wrong password".into(), passcode: "000000".into(), network: network() };
            assert!(service.try_log_in("jane@example.com", proof).await.is_err());
        }
        service.events.take();
        service.log_in(&jane).await; // 30 s later, which is as long as the first wait.
        let unlocked = |event: &Event| matches!(event, Event::LoginUnlocked { .. });
        assert_eq!(service.events.take().iter().any(unlocked), unlocks, "after {wrong}");
    }
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
async fn logout_ends_only_its_session() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let (one, two) = (service.log_in(&jane).await, service.log_in(&jane).await);
    service.accounts.log_out(&one).await.unwrap();
    assert!(!service.lives(&one).await && service.lives(&two).await);
    assert_eq!(service.audited(AuditAction::LoggedOut).0, 1);
    let again = service.accounts.log_out(&one).await;
    assert!(matches!(again, Err(Error::Denied(Denial::SessionEnded))), "{again:?}");
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

/// Actions that are counted by the minute are recorded after it, with the time of recording.
#[tokio::test]
async fn counts_are_recorded_after_their_minute() {
    let service = Service::new().await;
    let minute = service.now().floor_to_minute();
    service.clock.set(minute.plus_seconds(59));
    let count = || {
        let (now, action) = (service.now(), AuditAction::CredentialShown);
        service.tally.count(now, None, Actor::Operator, action, Subject::Vault);
    };
    (0..3).for_each(|_| count());
    service.tally.flush(false).await.unwrap();
    assert_eq!(service.audited(AuditAction::CredentialShown).0, 0, "the minute lasts");
    service.clock.set(minute.plus_seconds(60));
    count();
    service.tally.flush(false).await.unwrap();
    let recorded = || {
        let records = service.store.audit().into_iter();
        let shown = records.filter(|record| record.action == AuditAction::CredentialShown);
        shown.map(|record| (record.at, record.count)).collect::<Vec<_>>()
    };
    assert_eq!(recorded(), [(minute.plus_seconds(60), 3)]);
    service.tally.flush(true).await.unwrap();
    assert_eq!(recorded(), [(minute.plus_seconds(60), 3), (minute.plus_seconds(60), 1)]);
}
