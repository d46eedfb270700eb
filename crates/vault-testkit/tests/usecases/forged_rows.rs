//! Rows of accounts that an attacker with write access to the database changed.

use super::service::{PASSWORD, Person, Service, exposed};
use vault_core::account::AccountState;
use vault_core::id::{PasswordId, SeedId};
use vault_core::role::Role;
use vault_core::usecase::AccountCommand;
use vault_core::{Error, Refusal};

fn invalid<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::Refused(Refusal::InvalidLogin | Refusal::InvalidEnrolment))), "{outcome:?}");
}

/// A row whose MAC does not verify accepts no login. The work is the same, and the row is reported.
#[tokio::test]
async fn assembled_account_row_cannot_log_in() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let hashes = service.hasher.verified().len();
    for part in 0..4 {
        service.store.tamper_with_account(jane.account, |row| match part {
            0 => row.grant.role = Role::Admin,
            1 => (row.grant.role, row.version) = (Role::Viewer, row.version + 1),
            2 => (row.version, row.password) = (row.version - 1, PasswordId::from_bytes([7; 16])),
            _ => (row.password, row.seed) = (PasswordId::from_bytes([0; 16]), SeedId::from_bytes([7; 16])),
        });
        invalid(service.try_log_in("jane@example.com", service.proof(&jane)).await);
    }
    assert!(service.saw_damage("accounts"));
    assert_eq!(service.hasher.verified().split_off(hashes), [None; 4]);
    assert_eq!(service.evaluations(), 0);
}

/// A changed row is not signed again by the next change.
#[tokio::test]
async fn damaged_account_is_not_resigned() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let session = service.log_in(&admin).await;
    assert!(service.store.tamper_with_account(jane.account, |row| row.grant.role = Role::Admin));
    let signed = service.as_admin(&session, jane.account, AccountCommand::SetRole(Role::Editor)).await;
    assert!(matches!(signed, Err(Error::Refused(Refusal::Damaged { .. }))));
    assert!(service.saw_damage("accounts"));
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

#[tokio::test]
async fn tampered_re_enrolment_is_rejected() {
    type Tampering = fn(&Service, &Person) -> bool;
    let tamperings: [Tampering; 4] = [
        |it, jane| it.store.tamper_with_account(jane.account, |row| row.grant.role = Role::Admin),
        |it, jane| it.store.tamper_with_account(jane.account, |row| row.grant.state = AccountState::Active),
        |it, jane| it.store.tamper_with_account(jane.account, |row| row.version += 1),
        |it, jane| it.store.tamper_with_account(jane.account, |row| row.seed = SeedId::from_bytes([7; 16])),
    ];
    for tamper in tamperings {
        let service = Service::new().await;
        let mut jane = service.person("Acme", "jane", Role::Viewer).await;
        let changed = service.as_operator("jane@example.com", AccountCommand::ReEnrol).await.unwrap();
        let code = changed.enrolment.unwrap().0.text().clone();
        let drafted = service.accounts.enrol(&code, PASSWORD.into()).await.unwrap();
        let secrets = [jane.secret.clone(), exposed(&drafted.passcode)];
        assert!(tamper(&service, &jane));
        invalid(service.accounts.confirm_enrolment(&code, &service.code(&secrets[1])).await);
        assert!(service.saw_damage("accounts"));
        for secret in secrets {
            jane.secret = secret;
            invalid(service.try_log_in("jane@example.com", service.proof(&jane)).await);
        }
    }
}
