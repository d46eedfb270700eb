//! From an invitation to an account.

use super::service::{PASSWORD, Person, Service, exposed, network};
use secrecy::SecretString;
use vault_core::account::AccountState;
use vault_core::audit::{Actor, AuditAction};
use vault_core::invitation::INVITATION_SECONDS;
use vault_core::password::PasswordFlaw;
use vault_core::port::AccountScope;
use vault_core::role::Role;
use vault_core::usecase::{
    ConfirmEnrolmentError, EnrolError, InviteError, Invited, Inviter, LogInError, OrganizationCommand, OwnerProof,
    ProofError,
};

async fn invited(service: &Service, name: &str, role: Role) -> Invited {
    let seed = service.store.audit().len() as u64;
    let inviter = Inviter::Operator("acme".to_owned());
    service.invite(seed).run(inviter, &format!("{name}@Example.com"), role).await.unwrap()
}

/// Drafts an enrolment; who the account's owner will be.
async fn draft(service: &Service, invited: &Invited) -> Person {
    let drafted = service.enrol().run(invited.code.text(), PASSWORD.into()).await.unwrap();
    Person {
        account: invited.grant.account,
        email: drafted.email,
        password: PASSWORD.to_owned(),
        secret: exposed(&drafted.passcode),
        recovery_codes: drafted.recovery_codes.into_iter().map(|code| code.0).collect(),
    }
}

async fn confirm(service: &Service, invited: &Invited, person: &Person) -> Result<(), ConfirmEnrolmentError> {
    let passcode = service.code(&person.secret);
    service.confirm_enrolment().run(invited.code.text(), &passcode).await
}

#[tokio::test]
async fn an_invited_person_enrols_and_logs_in() {
    let service = Service::new().await;
    let invited = invited(&service, "jane", Role::Editor).await;
    assert_eq!((invited.grant.state, invited.grant.email.as_str()), (AccountState::Invited, "jane@example.com"));
    let person = draft(&service, &invited).await;
    assert_eq!(person.email, invited.grant.email);
    let early = service.try_log_in("jane@example.com", service.proof(&person)).await;
    assert!(matches!(early, Err(LogInError::Proof(ProofError::Invalid))), "nothing is in force yet");

    confirm(&service, &invited, &person).await.unwrap();
    // A25: the code that confirmed it is spent.
    let passcode = service.code(&person.secret);
    let same = OwnerProof { password: PASSWORD.into(), passcode, network: network() };
    assert!(service.try_log_in("jane@example.com", same).await.is_err());
    let session = service.log_in(&person).await;
    assert_eq!((session.account, session.role), (invited.grant.account, Role::Editor));
    let own = service.own_account().run(&session).await.unwrap();
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
async fn a_code_that_opens_nothing_costs_no_hash() {
    let service = Service::new().await;
    let spent = invited(&service, "spent", Role::Viewer).await;
    let person = draft(&service, &spent).await;
    confirm(&service, &spent, &person).await.unwrap();
    let damaged = invited(&service, "damaged", Role::Viewer).await;
    let closed = invited(&service, "closed", Role::Viewer).await;
    service.store.tamper_with_invitation(damaged.grant.account, |row| row.grant.role = Role::Admin);

    let refused = async |code: &SecretString| {
        let drafted = service.enrol().run(code, PASSWORD.into()).await;
        assert!(matches!(drafted, Err(EnrolError::InvalidEnrolment)));
        let confirmed = service.confirm_enrolment().run(code, &"123456".into()).await;
        assert!(matches!(confirmed, Err(ConfirmEnrolmentError::InvalidEnrolment)));
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

/// A code moved to another invitation's row by somebody who writes to the database opens neither.
#[tokio::test]
async fn a_code_does_not_move_to_another_invitation() {
    let service = Service::new().await;
    let (own, wanted) = (invited(&service, "own", Role::Viewer).await, invited(&service, "wanted", Role::Admin).await);
    let mut code = None;
    service.store.tamper_with_invitation(own.grant.account, |row| code = Some(row.code));
    service.store.tamper_with_invitation(wanted.grant.account, |row| row.code = code.unwrap());
    service.store.tamper_with_invitation(own.grant.account, |row| row.expires_at = row.created_at);
    let drafted = service.enrol().run(own.code.text(), PASSWORD.into()).await;
    assert!(matches!(drafted, Err(EnrolError::InvalidEnrolment)));
}

#[tokio::test]
async fn the_newest_draft_counts() {
    let service = Service::new().await;
    let invited = invited(&service, "jane", Role::Viewer).await;
    let nothing = service.confirm_enrolment().run(invited.code.text(), &"123456".into()).await;
    assert!(matches!(nothing, Err(ConfirmEnrolmentError::InvalidEnrolment)), "nothing is drafted yet");
    let older = draft(&service, &invited).await;
    let newer = draft(&service, &invited).await;
    for wrong in [service.code(&older.secret), newer.recovery_codes[0].clone(), "".into()] {
        let refused = service.confirm_enrolment().run(invited.code.text(), &wrong).await;
        assert!(matches!(refused, Err(ConfirmEnrolmentError::WrongPasscode)));
    }
    confirm(&service, &invited, &newer).await.unwrap();
    service.log_in(&newer).await;
}

#[tokio::test]
async fn a_new_password_follows_the_rules() {
    let service = Service::new().await;
    let invited = invited(&service, "jane", Role::Viewer).await;
    for (password, flaw) in [
        ("short", PasswordFlaw::TooShort),
        ("password", PasswordFlaw::Common),
        ("jane@example.com", PasswordFlaw::Guessable),
    ] {
        let refused = service.enrol().run(invited.code.text(), password.into()).await;
        assert!(matches!(refused, Err(EnrolError::Password(found)) if found == flaw), "{password}");
    }
}

#[tokio::test]
async fn an_invitation_takes_its_address_until_it_is_over() {
    let service = Service::new().await;
    let admin = service.person("Acme", "admin", Role::Admin).await;
    let session = service.log_in(&admin).await;
    let first = invited(&service, "jane", Role::Viewer).await;
    for inviter in [Inviter::Operator("Other".to_owned()), Inviter::Session(session.clone())] {
        for taken in ["jane@example.com", "ADMIN@example.com"] {
            let refused = service.invite(1).run(inviter.clone(), taken, Role::Viewer).await;
            assert!(matches!(refused, Err(InviteError::AddressTaken)));
        }
    }
    let inviter = Inviter::Operator("Nowhere".to_owned());
    let nowhere = service.invite(1).run(inviter, "a@example.com", Role::Viewer).await;
    assert!(matches!(nowhere, Err(InviteError::NoOrganization)));
    let malformed = service.invite(1).run(Inviter::Session(session.clone()), "jane", Role::Viewer).await;
    assert!(matches!(malformed, Err(InviteError::Email(_))));

    service.clock.advance_seconds(INVITATION_SECONDS);
    let session = service.log_in(&admin).await;
    let inviter = Inviter::Session(session.clone());
    let second = service.invite(2).run(inviter, "jane@example.com", Role::Editor).await.unwrap();
    assert_ne!(second.grant.account, first.grant.account);
    assert_eq!(second.expires_at.as_millis() - INVITATION_SECONDS * 1000, service.now().as_millis());
    let listed = service.list().run(AccountScope::Session(session.clone())).await.unwrap();
    assert_eq!(
        listed.iter().map(|account| account.grant.state).collect::<Vec<_>>(),
        [AccountState::Active, AccountState::Invited]
    );
    assert_eq!(service.audited(AuditAction::AccountInvited).1, Some(Actor::from(&session)));
}
