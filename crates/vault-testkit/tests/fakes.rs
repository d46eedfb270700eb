//! Faults of the store in memory, and randomness of a vault on fakes.

use secrecy::ExposeSecret as _;
use vault_core::audit::{Actor, AuditAction, AuditRecord, Subject};
use vault_core::id::AuditId;
use vault_core::port::*;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_testkit::clock::{ManualClock, SequentialIds};
use vault_testkit::crypto::FakeAuditSealer;
use vault_testkit::fake::FakeVault;
use vault_testkit::memory::MemoryStore;

const NOW: vault_core::time::Timestamp = ManualClock::START;

fn record(ids: &SequentialIds, action: AuditAction) -> AuditRecord {
    AuditRecord {
        id: AuditId::from_uuid(ids.ordered(NOW)),
        at: NOW,
        organization: None,
        actor: Actor::Operator,
        action,
        subject: Subject::Instance,
        count: 1,
        note: None,
        origin: vault_core::audit::Origin::default(),
        rows: Vec::new(),
        changes: Vec::new(),
    }
}

#[tokio::test]
async fn failed_commit_changes_nothing_and_lost_response_everything() {
    let store = MemoryStore::new();
    let ids = SequentialIds::default();
    let entry = || FakeAuditSealer.seal(record(&ids, AuditAction::CredentialShown));
    let unavailable = || StoreError::Unavailable("on purpose".into());
    store.fail_next(unavailable());
    store.lose_next_answer(unavailable());
    assert!(matches!(store.append(vec![entry()]).await, Err(StoreError::Unavailable(_))));
    assert_eq!(store.audit().len(), 0);
    assert!(matches!(store.append(vec![entry()]).await, Err(StoreError::Unavailable(_))));
    assert_eq!(store.audit().len(), 1);
    store.append(vec![entry()]).await.unwrap();
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
