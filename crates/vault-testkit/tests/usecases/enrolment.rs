//! From an invitation to an account.

use super::service::{PASSWORD, Person, Service, exposed, network};
use secrecy::SecretString;
use vault_core::account::AccountState;
use vault_core::audit::{Actor, AuditAction};
use vault_core::invitation::INVITATION_SECONDS;
use vault_core::role::Role;
use vault_core::usecase::{Invited, OrganizationCommand, OwnerProof};
use vault_core::{Error, Refusal};

async fn invited(service: &Service, name: &str, role: Role) -> Invited {
    let acme = service.organization_named("acme").await;
    service.accounts.invite(&Service::OPERATOR, acme, &format!("{name}@Example.com"), role).await.unwrap()
}

/// Drafts an enrolment. Returns the future user of the account.
async fn draft(service: &Service, invited: &Invited) -> Person {
    let drafted = service.accounts.enrol(invited.code.text(), PASSWORD.into()).await.unwrap();
    Person {
        account: invited.grant.account,
        email: drafted.email,
        password: PASSWORD.to_owned(),
        secret: exposed(&drafted.passcode),
        recovery_codes: drafted.recovery_codes.into_iter().map(|code| code.0).collect(),
    }
}

async fn confirm(service: &Service, invited: &Invited, person: &Person) -> Result<(), Error> {
    let passcode = service.code(&person.secret);
    service.accounts.confirm_enrolment(invited.code.text(), &passcode).await
}

#[tokio::test]
async fn invited_user_enrols_and_logs_in() {
    let service = Service::new().await;
    let invited = invited(&service, "jane", Role::Editor).await;
    assert_eq!((invited.grant.state, invited.grant.email.as_str()), (AccountState::Invited, "jane@example.com"));
    let person = draft(&service, &invited).await;
    assert_eq!(person.email, invited.grant.email);
    let early = service.try_log_in("jane@example.com", service.proof(&person)).await;
    assert!(matches!(early, Err(Error::Refused(Refusal::InvalidLogin))), "nothing is in force yet");

    confirm(&service, &invited, &person).await.unwrap();
    // A25: the code that confirmed the enrolment is used up.
    let passcode = service.code(&person.secret);
    let same = OwnerProof { password: PASSWORD.into(), passcode, network: network() };
    assert!(service.try_log_in("jane@example.com", same).await.is_err());
    let session = service.log_in(&person).await;
    assert_eq!((session.account, session.role), (invited.grant.account, Role::Editor));
    let own = service.accounts.own(&session).await.unwrap();
    assert_eq!((own.recovery_codes_left, own.organization.as_str()), (10, "Acme"));
    let by_code =
        OwnerProof { password: PASSWORD.into(), passcode: person.recovery_codes[0].clone(), network: network() };
    service.try_log_in("jane@example.com", by_code).await.unwrap();
    for action in [AuditAction::AccountInvited, AuditAction::EnrolmentDrafted, AuditAction::AccountEnrolled] {
        assert_eq!(service.audited(action).0, 1, "{action:?}");
    }
    assert_eq!(service.audited(AuditAction::AccountInvited).1, Some(Actor::Operator));
}

#[tokio::test]
async fn unknown_code_costs_no_hash() {
    let service = Service::new().await;
    let spent = invited(&service, "spent", Role::Viewer).await;
    let person = draft(&service, &spent).await;
    confirm(&service, &spent, &person).await.unwrap();
    let damaged = invited(&service, "damaged", Role::Viewer).await;
    let closed = invited(&service, "closed", Role::Viewer).await;
    service.store.tamper_with_invitation(damaged.grant.account, |row| row.grant.role = Role::Admin);

    let refused = async |code: &SecretString| {
        let drafted = service.accounts.enrol(code, PASSWORD.into()).await;
        assert!(matches!(drafted, Err(Error::Refused(Refusal::InvalidEnrolment))));
        let confirmed = service.accounts.confirm_enrolment(code, &"123456".into()).await;
        assert!(matches!(confirmed, Err(Error::Refused(Refusal::InvalidEnrolment))));
    };
    for code in ["", "x", "aaaaaaaaaaaaaaaaaaaaaaaaaa", " aaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        refused(&code.into()).await;
    }
    refused(spent.code.text()).await;
    refused(damaged.code.text()).await;
    assert!(service.saw_damage("invitations"));
    let operator = service.operator();
    operator.change_organization("Acme", OrganizationCommand::Disable).await.unwrap();
    refused(closed.code.text()).await;
    operator.change_organization("Acme", OrganizationCommand::Enable).await.unwrap();
    service.clock.advance_seconds(INVITATION_SECONDS);
    refused(closed.code.text()).await;
    assert_eq!(service.audited(AuditAction::EnrolmentDrafted).0, 1);
}

/// If an attacker with write access to the database moves a code to another invitation's row, it is accepted for
/// neither.
#[tokio::test]
async fn code_is_bound_to_its_invitation() {
    let service = Service::new().await;
    let (own, wanted) = (invited(&service, "own", Role::Viewer).await, invited(&service, "wanted", Role::Admin).await);
    let mut code = None;
    service.store.tamper_with_invitation(own.grant.account, |row| code = Some(row.code));
    service.store.tamper_with_invitation(wanted.grant.account, |row| row.code = code.unwrap());
    service.store.tamper_with_invitation(own.grant.account, |row| row.expires_at = row.created_at);
    let drafted = service.accounts.enrol(own.code.text(), PASSWORD.into()).await;
    assert!(matches!(drafted, Err(Error::Refused(Refusal::InvalidEnrolment))));
}
