//! A user without phone and recovery codes enrols again.

use super::service::{Person, Service, exposed, network};
use secrecy::SecretString;
use vault_core::account::AccountState;
use vault_core::audit::{Actor, AuditAction};
use vault_core::id::SeedId;
use vault_core::invitation::INVITATION_SECONDS;
use vault_core::notice::NoticeCode;
use vault_core::port::{Event, LoginRefusal};
use vault_core::principal::SessionPrincipal;
use vault_core::role::Role;
use vault_core::usecase::{AccountCommand, OwnerProof};
use vault_core::{Error, Refusal};

const NEW_PASSWORD: &str = "another long password";

/// Returns the code with which the person enrols again, as the session's admin.
async fn re_enrol(service: &Service, session: &SessionPrincipal, person: &Person) -> SecretString {
    let changed = service.as_admin(session, person.account, AccountCommand::ReEnrol).await.unwrap();
    let (code, expires_at) = changed.enrolment.unwrap();
    assert_eq!(expires_at, service.now().plus_seconds(INVITATION_SECONDS));
    assert_eq!(changed.account.invitation_expires_at, Some(expires_at));
    code.text().clone()
}

/// Drafts an enrolment. Returns its user.
async fn draft(service: &Service, person: &Person, code: &SecretString) -> Person {
    let drafted = service.accounts.enrol(code, NEW_PASSWORD.into()).await.unwrap();
    assert_eq!(drafted.email, person.email);
    Person {
        account: person.account,
        email: drafted.email,
        password: NEW_PASSWORD.to_owned(),
        secret: exposed(&drafted.passcode),
        recovery_codes: drafted.recovery_codes.into_iter().map(|code| code.0).collect(),
    }
}

async fn confirm(service: &Service, code: &SecretString, person: &Person) -> Result<(), Error> {
    service.accounts.confirm_enrolment(code, &service.code(&person.secret)).await
}

async fn cannot_log_in(service: &Service, person: &Person) {
    let by_step = service.proof(person);
    let by_code = OwnerProof {
        password: person.password.as_str().into(),
        passcode: person.recovery_codes[0].clone(),
        network: network(),
    };
    for proof in [by_step, by_code] {
        let outcome = service.try_log_in(person.email.as_str(), proof).await;
        assert!(matches!(outcome, Err(Error::Refused(Refusal::InvalidLogin))), "{outcome:?}");
    }
}

async fn state(service: &Service, session: &SessionPrincipal, person: &Person) -> (Role, AccountState) {
    let listed = service.listed(session).await.unwrap();
    let rows: Vec<_> = listed.into_iter().filter(|row| row.grant.account == person.account).collect();
    assert_eq!(rows.len(), 1);
    (rows[0].grant.role, rows[0].grant.state)
}

#[tokio::test]
async fn admin_re_enrols_another_user() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let second = service.person("Acme", "second", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Editor).await;
    let (session, janes) = (service.log_in(&admin).await, service.log_in(&jane).await);
    let at = service.now();
    let code = re_enrol(&service, &session, &jane).await;
    assert_eq!(service.audited(AuditAction::AccountReEnrolled), (1, Some(Actor::from(&session))));
    assert!(!service.lives(&janes).await, "immediately");
    assert!(service.lives(&session).await);

    let (evaluations, hashes) = (service.evaluations(), service.hasher.verified().len());
    cannot_log_in(&service, &jane).await;
    let verified = service.hasher.verified().split_off(hashes);
    assert_eq!(verified, [None, None], "the same work as every refused login, and against a decoy");
    assert_eq!(service.evaluations(), evaluations);
    let refused = |event: &Event| matches!(event, Event::LoginRefused { refusal: LoginRefusal::Closed, account: Some(account), .. } if *account == jane.account);
    assert_eq!(service.events.events().iter().filter(|event| refused(event)).count(), 2);
    assert_eq!(state(&service, &session, &jane).await, (Role::Editor, AccountState::ReEnrolling));

    let again = draft(&service, &jane, &code).await;
    cannot_log_in(&service, &again).await;
    confirm(&service, &code, &again).await.unwrap();
    assert_eq!(service.audited(AuditAction::AccountEnrolled).0, 1);
    assert!(confirm(&service, &code, &again).await.is_err(), "the code is spent");
    assert!(service.accounts.enrol(&code, NEW_PASSWORD.into()).await.is_err());
    cannot_log_in(&service, &jane).await;
    service.clock.advance_seconds(3600); // those refusals have had their waits
    let renewed = service.log_in(&again).await;
    assert_eq!((renewed.account, renewed.role), (jane.account, Role::Editor));
    assert!(!service.lives(&janes).await);

    let own = service.accounts.own(&renewed).await.unwrap();
    assert_eq!(own.recovery_codes_left, 10);
    let reported: Vec<_> = own.notices.iter().map(|notice| (notice.code, notice.at)).collect();
    assert_eq!(reported, [(NoticeCode::ReEnrolled, Some(at))]);
    let seconds = service.log_in(&second).await;
    for session in [&session, &seconds] {
        let own = service.accounts.own(session).await.unwrap();
        let reported: Vec<_> = own.notices.iter().map(|notice| (notice.code, notice.at)).collect();
        assert_eq!(reported, [(NoticeCode::ColleagueReEnrolled(jane.account), Some(at))]);
    }
}

/// An operator can require any user to enrol again, including an organization's only admin.
#[tokio::test]
async fn operator_re_enrols_last_admin() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let changed = service.as_operator("admin@example.com", AccountCommand::ReEnrol).await.unwrap();
    assert_eq!(service.audited(AuditAction::AccountReEnrolled), (1, Some(Actor::Operator)));
    let code = changed.enrolment.unwrap().0.text().clone();
    let again = draft(&service, &admin, &code).await;
    confirm(&service, &code, &again).await.unwrap();
    assert_eq!(service.log_in(&again).await.role, Role::Admin);
}

/// Until then, only the owner can set the password and the passcode.
#[tokio::test]
async fn secrets_of_re_enrolling_account_cannot_be_set() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    service.as_operator("jane@example.com", AccountCommand::ReEnrol).await.unwrap();
    service.as_operator("jane@example.com", AccountCommand::Unlock).await.unwrap();
    cannot_log_in(&service, &jane).await;
    service.as_operator("jane@example.com", AccountCommand::Delete).await.unwrap();
    service.person("Acme", "jane", Role::Viewer).await;
}

/// Disabling and enabling restores nothing: an enabled user must enrol first.
#[tokio::test]
async fn re_enrolment_keeps_disabled_state() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let session = service.log_in(&admin).await;
    for disabled_first in [false, true] {
        let name = if disabled_first { "joe" } else { "jane" };
        let person = service.person("Acme", name, Role::Viewer).await;
        let change =
            async |command| service.as_admin(&session, person.account, command).await.unwrap().account.grant.state;
        if disabled_first {
            assert_eq!(change(AccountCommand::Disable).await, AccountState::Disabled);
        }
        let code = re_enrol(&service, &session, &person).await;
        assert_eq!(change(AccountCommand::Disable).await, AccountState::Disabled);
        assert_eq!(change(AccountCommand::Enable).await, AccountState::ReEnrolling);
        assert_eq!(change(AccountCommand::Enable).await, AccountState::ReEnrolling);
        cannot_log_in(&service, &person).await;
        assert_eq!(change(AccountCommand::Disable).await, AccountState::Disabled);
        let again = draft(&service, &person, &code).await;
        confirm(&service, &code, &again).await.unwrap();
        assert_eq!(state(&service, &session, &person).await.1, AccountState::Disabled);
        cannot_log_in(&service, &again).await;
        assert_eq!(change(AccountCommand::Enable).await, AccountState::Active);
        service.log_in(&again).await;
    }
}

/// The role is that of the account, even if it had another role when the code was created.
#[tokio::test]
async fn concurrently_lowered_role_stays_lowered() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Admin).await;
    let session = service.log_in(&admin).await;
    let code = re_enrol(&service, &session, &jane).await;
    let again = draft(&service, &jane, &code).await;
    service.as_admin(&session, jane.account, AccountCommand::SetRole(Role::Viewer)).await.unwrap();
    assert_eq!(state(&service, &session, &jane).await, (Role::Viewer, AccountState::ReEnrolling));
    confirm(&service, &code, &again).await.unwrap();
    assert_eq!(service.log_in(&again).await.role, Role::Viewer);
}

/// A code is invalid after a new one was created or after it has expired, and stays invalid.
#[tokio::test]
async fn replaced_or_expired_code_is_refused() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let session = service.log_in(&admin).await;
    let first = re_enrol(&service, &session, &jane).await;
    let drafted = draft(&service, &jane, &first).await;
    let second = re_enrol(&service, &session, &jane).await;
    assert!(matches!(confirm(&service, &first, &drafted).await, Err(Error::Refused(Refusal::InvalidEnrolment))));
    let late = draft(&service, &jane, &second).await;
    service.clock.advance_seconds(INVITATION_SECONDS);
    assert!(matches!(confirm(&service, &second, &late).await, Err(Error::Refused(Refusal::InvalidEnrolment))));
    let session = service.log_in(&admin).await;
    assert_eq!(state(&service, &session, &jane).await.1, AccountState::ReEnrolling);
    cannot_log_in(&service, &jane).await;
    let third = re_enrol(&service, &session, &jane).await;
    let again = draft(&service, &jane, &third).await;
    confirm(&service, &third, &again).await.unwrap();
    service.log_in(&again).await;
}

/// An attacker with write access to the database gains nothing, because the privileged row is signed.
#[tokio::test]
async fn tampered_re_enrolment_is_rejected() {
    type Tampering = fn(&Service, &Person) -> bool;
    let tamperings: [(Tampering, &str); 6] = [
        // The confirmation would create an account with the previous role.
        (
            |service, jane| {
                service.store.tamper_with_invitation(jane.account, |row| row.grant.state = AccountState::Invited)
            },
            "invitations",
        ),
        (
            |service, jane| {
                service
                    .store
                    .tamper_with_invitation(jane.account, |row| row.expires_at = row.expires_at.plus_seconds(60))
            },
            "invitations",
        ),
        (
            |service, jane| service.store.tamper_with_account(jane.account, |row| row.grant.role = Role::Admin),
            "accounts",
        ),
        (
            |service, jane| {
                service.store.tamper_with_account(jane.account, |row| row.grant.state = AccountState::Active)
            },
            "accounts",
        ),
        (|service, jane| service.store.tamper_with_account(jane.account, |row| row.version += 1), "accounts"),
        (
            |service, jane| {
                service.store.tamper_with_account(jane.account, |row| row.seed = SeedId::from_bytes([7; 16]))
            },
            "accounts",
        ),
    ];
    for (tamper, table) in tamperings {
        let service = Service::new().await;
        let admin = service.person("Acme", "admin", Role::Admin).await;
        let jane = service.person("Acme", "jane", Role::Viewer).await;
        let session = service.log_in(&admin).await;
        let code = re_enrol(&service, &session, &jane).await;
        let again = draft(&service, &jane, &code).await;
        assert!(tamper(&service, &jane));
        let refused = confirm(&service, &code, &again).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::InvalidEnrolment))), "{refused:?}");
        assert!(service.saw_damage(table));
        cannot_log_in(&service, &jane).await;
        cannot_log_in(&service, &again).await;
    }
}
