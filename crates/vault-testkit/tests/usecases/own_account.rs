//! Changes that users make to their own accounts.

use super::service::{Person, Service, exposed, network};
use vault_core::audit::{Actor, AuditAction};
use vault_core::lockout::{CLOSING_ATTEMPTS, LONGEST_WAIT_SECONDS, WRONG_PASSCODES};
use vault_core::notice::NoticeCode;
use vault_core::passcode::{CONFIRMATIONS, PENDING_SECONDS};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::role::Role;
use vault_core::usecase::OwnerProof;
use vault_core::{Error, Refusal};

const NEW_PASSWORD: &str = "an entirely new password";

async fn jane(service: &Service) -> (Person, SessionPrincipal, SessionPrincipal) {
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let sessions = (service.log_in(&jane).await, service.log_in(&jane).await);
    (jane, sessions.0, sessions.1)
}

fn wrong(service: &Service, jane: &Person) -> OwnerProof {
    OwnerProof { password: "a wrong password".into(), ..service.proof(jane) }
}

#[tokio::test]
async fn owner_changes_the_password() {
    let service = Service::new().await;
    let (mut jane, session, other) = jane(&service).await;
    let hashes = service.hasher.verified().len();
    for flawed in ["short", "jane@example.com", "password", "Acme"] {
        let refused = service.accounts.change_password(&session, service.proof(&jane), flawed.into()).await;
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
    assert_eq!(service.hasher.verified().len(), hashes, "the new password is validated first");
    let refused = service.accounts.change_password(&session, wrong(&service, &jane), NEW_PASSWORD.into()).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::InvalidLogin))));
    assert_eq!(service.audited(AuditAction::LoginRefused), (1, Some(Actor::from(&session))));

    service.hasher.raise_parameters(); // A rehash of the old password must not be stored.
    service.accounts.change_password(&session, service.proof(&jane), NEW_PASSWORD.into()).await.unwrap();
    assert_eq!([service.lives(&session).await, service.lives(&other).await], [true, false]);
    assert_eq!(service.audited(AuditAction::AccountPasswordChanged), (1, Some(Actor::from(&session))));
    assert!(service.try_log_in("jane@example.com", service.proof(&jane)).await.is_err());
    jane.password = NEW_PASSWORD.to_owned();
    service.log_in(&jane).await;
    assert_eq!(service.accounts.own(&session).await.unwrap().notices, []);
}

#[tokio::test]
async fn owner_replaces_the_passcode() {
    let service = Service::new().await;
    let (mut jane, session, other) = jane(&service).await;
    let nothing = service.accounts.confirm_passcode(&session, &"123456".into()).await;
    assert!(matches!(nothing, Err(Error::Refused(Refusal::NothingPending))));
    let refused = service.accounts.replace_passcode(&session, wrong(&service, &jane)).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::InvalidLogin))));
    let secret = exposed(&service.accounts.replace_passcode(&session, service.proof(&jane)).await.unwrap());
    let still = service.log_in(&jane).await;
    assert!(service.lives(&other).await && service.lives(&still).await, "nothing is in force yet");

    let old = service.code(&jane.secret);
    let unconfirmed = service.accounts.confirm_passcode(&session, &old).await;
    assert!(matches!(unconfirmed, Err(Error::Refused(Refusal::InvalidLogin))));
    assert_eq!(service.audited(AuditAction::AccountPasscodeChangeRefused), (1, Some(Actor::from(&session))));
    let code = service.code(&secret);
    service.accounts.confirm_passcode(&session, &code).await.unwrap();
    assert_eq!([service.lives(&session).await, service.lives(&other).await], [true, false]);
    assert_eq!(service.accounts.own(&session).await.unwrap().passcode_enrolled_at, service.now());
    let spent = OwnerProof { password: jane.password.as_str().into(), passcode: code, network: network() };
    assert!(service.try_log_in("jane@example.com", spent).await.is_err(), "the confirming code is spent");
    assert!(service.try_log_in("jane@example.com", service.proof(&jane)).await.is_err(), "the old seed is gone");
    jane.secret = secret;
    service.log_in(&jane).await;
}

#[tokio::test]
async fn pending_passcode_allows_five_codes_within_an_hour() {
    let service = Service::new().await;
    let (jane, session, _) = jane(&service).await;
    let secret = exposed(&service.accounts.replace_passcode(&session, service.proof(&jane)).await.unwrap());
    for _ in 0..CONFIRMATIONS {
        let wrong = service.accounts.confirm_passcode(&session, &"no code".into()).await;
        assert!(matches!(wrong, Err(Error::Refused(Refusal::InvalidLogin))));
    }
    let late = service.accounts.confirm_passcode(&session, &service.code(&secret)).await;
    assert!(matches!(late, Err(Error::Refused(Refusal::NothingPending))));
    let secret = exposed(&service.accounts.replace_passcode(&session, service.proof(&jane)).await.unwrap());
    service.clock.advance_seconds(PENDING_SECONDS);
    let late = service.accounts.confirm_passcode(&session, &service.code(&secret)).await;
    assert!(matches!(late, Err(Error::Refused(Refusal::NothingPending))));
}

/// Re-authentications count towards the limits of logins.
#[tokio::test]
async fn re_authentication_counts_as_login() {
    let service = Service::new().await;
    let (jane, session, _) = jane(&service).await;
    let mut outcomes = Vec::new();
    for attempt in 0..8 {
        let evaluated = service.evaluations();
        let proof = OwnerProof { password: "a wrong password".into(), passcode: "123456".into(), network: network() };
        let refused = match attempt % 4 {
            0 => service.accounts.change_password(&session, proof, NEW_PASSWORD.into()).await.is_err(),
            1 => matches!(
                service.accounts.replace_passcode(&session, proof).await,
                Err(Error::Refused(Refusal::InvalidLogin))
            ),
            2 => matches!(
                service.accounts.replace_recovery_codes(&session, proof).await,
                Err(Error::Refused(Refusal::InvalidLogin))
            ),
            _ => {
                let login = service.try_log_in("jane@example.com", proof).await;
                matches!(login, Err(Error::Refused(Refusal::InvalidLogin)))
            }
        };
        assert!(refused);
        outcomes.push(service.evaluations() > evaluated);
    }
    assert_eq!(outcomes, [true, true, true, true, true, false, false, false]);
    // During the lockout, the right re-authentication is rejected as well.
    let right = service.accounts.change_password(&session, service.proof(&jane), NEW_PASSWORD.into()).await;
    assert!(right.is_ok(), "30 s have elapsed");
}

#[tokio::test]
async fn locked_bucket_and_disabled_passcode_are_recorded_and_noticed() {
    let service = Service::new().await;
    let (jane, session, _) = jane(&service).await;
    let code = |code: usize| jane.recovery_codes[code].clone();
    for _ in 0..WRONG_PASSCODES {
        service.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        let proof = OwnerProof { passcode: "no code".into(), ..service.proof(&jane) };
        assert!(service.try_log_in("jane@example.com", proof).await.is_err());
    }
    assert_eq!(service.audited(AuditAction::LoginPasscodeDisabled).0, 1);
    assert_eq!(service.audited(AuditAction::LoginPasscodeRefused).0, 20);
    service.clock.advance_seconds(LONGEST_WAIT_SECONDS);
    let disabled = service.accounts.change_password(&session, service.proof(&jane), NEW_PASSWORD.into()).await;
    assert!(matches!(disabled, Err(Error::Refused(Refusal::InvalidLogin))), "as for a login");

    for _ in WRONG_PASSCODES + 1..CLOSING_ATTEMPTS {
        assert_eq!(service.audited(AuditAction::LoginLocked).0, 0);
        service.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        assert!(service.try_log_in("jane@example.com", wrong(&service, &jane)).await.is_err());
    }
    assert_eq!(service.audited(AuditAction::LoginLocked).0, 1);
    service.clock.advance_seconds(LONGEST_WAIT_SECONDS);
    let elsewhere = vault_core::network::Network::of([198, 51, 100, 1].into());
    let proof = OwnerProof { passcode: code(0), network: elsewhere, ..service.proof(&jane) };
    let fresh = service.try_log_in("jane@example.com", proof).await.unwrap();
    let own = service.accounts.own(&fresh).await.unwrap();
    let reported: Vec<_> = own.notices.iter().map(|notice| notice.code).collect();
    assert_eq!(reported, [NoticeCode::RecoveryCodeUsed, NoticeCode::LoginLocked, NoticeCode::PasscodeDisabled]);
}

#[tokio::test]
async fn ended_session_cannot_re_authenticate() {
    let service = Service::new().await;
    let (jane, session, other) = jane(&service).await;
    service.accounts.end_session(&other, session.session).await.unwrap();
    assert_eq!(service.audited(AuditAction::SessionEnded), (1, Some(Actor::from(&other))));
    let hashes = service.hasher.verified().len();
    let ended = Denial::SessionEnded;
    let password = service.accounts.change_password(&session, service.proof(&jane), NEW_PASSWORD.into()).await;
    assert!(matches!(password, Err(Error::Denied(refusal)) if refusal == ended));
    let seed = service.accounts.replace_passcode(&session, service.proof(&jane)).await;
    assert!(matches!(seed, Err(Error::Denied(refusal)) if refusal == ended));
    let codes = service.accounts.replace_recovery_codes(&session, service.proof(&jane)).await;
    assert!(matches!(codes, Err(Error::Denied(refusal)) if refusal == ended));
    let confirmed = service.accounts.confirm_passcode(&session, &"123456".into()).await;
    assert!(matches!(confirmed, Err(Error::Denied(refusal)) if refusal == ended));
    assert_eq!(service.hasher.verified().len(), hashes);
}

#[tokio::test]
async fn owner_lists_and_ends_sessions() {
    let service = Service::new().await;
    let (_, first, second) = jane(&service).await;
    let other = service.person("Acme", "other", Role::Admin).await;
    let theirs = service.log_in(&other).await;
    let listed = service.accounts.sessions(&second).await.unwrap();
    let seen: Vec<_> = listed.iter().map(|listed| (listed.session.id, listed.session.id == second.session)).collect();
    assert_eq!(seen, [(second.session, true), (first.session, false)]);
    assert_eq!(listed[0].session.network, "192.0.2.0/24");
    assert_eq!(listed[0].session.client.as_deref(), Some("a client"));

    let stranger = service.accounts.end_session(&second, theirs.session).await;
    assert!(matches!(stranger, Err(Error::Refused(Refusal::NotFound))));
    service.accounts.end_session(&second, first.session).await.unwrap();
    let again = service.accounts.end_session(&second, first.session).await;
    assert!(matches!(again, Err(Error::Refused(Refusal::NotFound))));
    service.accounts.end_session(&second, second.session).await.unwrap();
    assert_eq!(service.audited(AuditAction::LoggedOut), (1, Some(Actor::from(&second))));
    let dead = service.accounts.sessions(&second).await;
    assert!(matches!(dead, Err(Error::Denied(Denial::SessionEnded))));
    assert!(service.lives(&theirs).await);
}

/// A session's last use is stored to the minute, and written at most once a minute.
#[tokio::test]
async fn last_use_of_a_session_is_shown_to_its_owner() {
    let service = Service::new().await;
    let (_, first, second) = jane(&service).await;
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
