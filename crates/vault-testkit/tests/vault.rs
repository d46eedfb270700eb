//! The vault on the store in memory.

use std::sync::Arc;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::AccountId;
use vault_core::namespace::Namespace;
use vault_core::port::{Event, IdGenerator as _};
use vault_core::principal::{EmbedderPrincipal, Principal};
use vault_core::role::Role;
use vault_core::sealed::Blob;
use vault_core::usecase::{Ambient, AuditTally, Operator, SaveRequest, Vault};
use vault_testkit::clock::{ManualClock, RecordingEvents, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, PlainSealer};
use vault_testkit::memory::MemoryStore;

#[tokio::test]
async fn a_damaged_row_costs_itself_and_not_the_page() {
    let (store, ids) = (Arc::new(MemoryStore::new()), Arc::new(SequentialIds::default()));
    let events = Arc::new(RecordingEvents::default());
    let ambient = Ambient {
        clock: Arc::new(ManualClock::default()),
        ids: ids.clone(),
        events: events.clone(),
        audit: Arc::new(FakeAuditSealer),
        origins: Arc::new(vault_core::port::NoOrigins),
    };
    let tally = Arc::new(AuditTally::new(ambient.clone(), store.clone()));
    let sealer = Arc::new(PlainSealer::new(store.clone(), ids.clone()));
    let operator = Operator::new(ambient.clone(), tally.clone(), store.clone(), sealer.clone());
    let vault = Vault::new(ambient, tally, store.clone(), sealer.clone(), sealer, Arc::new(FakeDigester::default()));
    let organization = operator.create_organization("Acme").await.unwrap().id;
    let account = AccountId::from_uuid(ids.random());
    let editor = Principal::Embedder(EmbedderPrincipal { organization, account, role: Role::Editor });
    let save = async || {
        let json = br#"{"url":"https://files.example/a"}"#;
        let data = CredentialData::from_canonical_json(CredentialType::DirectLink, json).unwrap();
        let namespace = Namespace::parse("imports", "").unwrap();
        vault.save(&editor, SaveRequest::new(namespace, data)).await.unwrap()
    };
    let (sound, damaged) = (save().await, save().await);
    store.tamper_with_credential(damaged, |sealed| sealed.information = Blob::from_bytes(b"x".to_vec()));

    let page = vault.list(&editor, Default::default(), Default::default()).await.unwrap();
    let shown: Vec<_> = page.items.iter().map(|item| (item.id, item.information.is_some())).collect();
    assert_eq!(shown, [(damaged, false), (sound, true)]);
    assert!(vault.show(&editor, damaged).await.unwrap().information.is_none());
    let counted = events.events().into_iter().filter(
        |event| matches!(event, Event::IntegrityFailure { table: "credentials", id } if *id == damaged.to_string()),
    );
    assert_eq!(counted.count(), 2, "each look at it is counted");
}
