//! Faults of the store in memory, and randomness of a vault on fakes.

use secrecy::ExposeSecret as _;
use vault_core::Error;
use vault_core::audit::{Actor, AppendEntries, AuditAction, Subject};
use vault_core::port::*;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_testkit::fake::FakeVault;

#[tokio::test]
async fn failed_commit_changes_nothing_and_lost_response_everything() {
    let fake = FakeVault::new();
    let (store, environment) = (&fake.store, &fake.environment);
    let append = async || {
        let action = AuditAction::CredentialShown;
        let entry = environment.record(environment.now(), None, Actor::Operator, action, Subject::Instance);
        fake.operate(AppendEntries(vec![entry])).await
    };
    let unavailable = || StoreError::Unavailable("on purpose".into());
    store.fail_next(unavailable());
    store.lose_next_answer(unavailable());
    for count in [0, 1] {
        assert!(matches!(append().await, Err(Error::Store(StoreError::Unavailable(_)))));
        assert_eq!(store.audit().len(), count);
    }
    append().await.unwrap();
    assert_eq!(store.audit().len(), 2);
}

/// Each use case of a vault continues the randomness of the others.
#[tokio::test]
async fn use_cases_of_one_vault_create_different_codes() {
    let fake = FakeVault::new();
    let acme = fake.operator().ensure_organization("Acme").await.unwrap().id;
    let invited = async |email| {
        let invited = fake.accounts().invite(&Principal::Operator, acme, email, Role::Viewer).await.unwrap();
        invited.code.text().expose_secret().to_owned()
    };
    assert_ne!(invited("ada@example.com").await, invited("joe@example.com").await);
}
