//! Documents of accounts that an attacker with write access to the database changed.

use super::service::{PASSWORD, Person, Service, exposed};
use vault_core::entity::Kind;
use vault_core::port::EntityRow;
use vault_core::role::Role;
use vault_core::usecase::AccountCommand;
use vault_core::{Error, Refusal};

fn invalid<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::Refused(Refusal::InvalidLogin | Refusal::InvalidEnrolment))), "{outcome:?}");
}

/// Changes the row of a document of the person.
fn tamper(service: &Service, person: &Person, kind: Kind, change: impl FnOnce(&mut EntityRow)) {
    service.store.tamper_with_entities(|rows| {
        let of = |row: &&mut EntityRow| row.key.kind == kind && row.key.id == *person.account.as_uuid();
        change(rows.values_mut().find(of).unwrap());
    });
}

/// An account whose document does not open accepts no login. The work is the same, and the row is reported.
#[tokio::test]
async fn assembled_account_row_cannot_log_in() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let joe = service.person("Acme", "joe", Role::Viewer).await;
    let hashes = service.hasher.verified().len();
    tamper(&service, &jane, Kind::Account, |row| row.version += 1);
    invalid(service.try_log_in("jane@example.com", service.proof(&jane)).await);
    assert_eq!(service.hasher.verified().split_off(hashes), [false]);
    assert_eq!(service.evaluations(), 0);
    assert!(service.saw_damage("entities"));

    // Secrets that do not open are those of no one.
    tamper(&service, &joe, Kind::AccountSecrets, |row| row.version += 1);
    invalid(service.try_log_in("joe@example.com", service.proof(&joe)).await);
    assert_eq!(service.hasher.verified().last(), Some(&false));
}

/// Secrets that were put back under the rights after them are not accepted.
#[tokio::test]
async fn former_secrets_cannot_log_in() {
    let service = Service::new().await;
    let mut jane = service.person("Acme", "jane", Role::Viewer).await;
    let mut kept = None;
    tamper(&service, &jane, Kind::AccountSecrets, |row| kept = Some(row.clone()));
    let changed = service.as_operator("jane@example.com", AccountCommand::ReEnrol).await.unwrap();
    let code = changed.enrolment.unwrap().0.text().clone();
    let drafted = service.accounts.enrol(&code, PASSWORD.into()).await.unwrap();
    let secret = exposed(&drafted.passcode);
    service.accounts.confirm_enrolment(&code, &service.code(&secret)).await.unwrap();
    tamper(&service, &jane, Kind::AccountSecrets, |row| *row = kept.unwrap());
    for secret in [jane.secret.clone(), secret] {
        jane.secret = secret;
        invalid(service.try_log_in("jane@example.com", service.proof(&jane)).await);
    }
    assert!(service.saw_damage("entities"));
}

/// A changed document is not sealed again by the next change.
#[tokio::test]
async fn damaged_account_is_not_resealed() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let session = service.log_in(&admin).await;
    tamper(&service, &jane, Kind::Account, |row| row.version += 1);
    let changed = service.as_admin(&session, jane.account, AccountCommand::SetRole(Role::Editor)).await;
    assert!(matches!(changed, Err(Error::Refused(Refusal::Damaged { .. }))));
    assert!(service.saw_damage("entities"));
}

/// An invitation that does not open is rejected like an unknown code, and reported.
#[tokio::test]
async fn changed_invitation_is_rejected() {
    let service = Service::new().await;
    let acme = service.organization_named("acme").await;
    let invited = service.accounts.invite(&Service::OPERATOR, acme, "own@example.com", Role::Viewer).await.unwrap();
    service.store.tamper_with_entities(|rows| {
        rows.get_mut(&(acme, "invitation", *invited.grant.account.as_uuid())).unwrap().version += 1;
    });
    invalid(service.accounts.enrol(invited.code.text(), PASSWORD.into()).await.map(drop));
    assert!(service.saw_damage("entities"));
}
