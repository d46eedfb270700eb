//! The vault on the store in memory.

use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::AccountId;
use vault_core::namespace::Namespace;
use vault_core::port::Event;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::Blob;
use vault_core::usecase::SaveRequest;
use vault_testkit::fake::FakeVault;

#[tokio::test]
async fn a_damaged_row_costs_itself_and_not_the_page() {
    let fake = FakeVault::new();
    let vault = fake.vault();
    let organization = fake.operator().ensure_organization("Acme").await.unwrap().id;
    let editor = Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor);
    let save = async || {
        let json = br#"{"url":"https://files.example/a"}"#;
        let data = CredentialData::from_canonical_json(CredentialType::DirectLink, json).unwrap();
        let namespace = Namespace::parse("imports", "").unwrap();
        vault.save(&editor, SaveRequest::new(namespace, data)).await.unwrap()
    };
    let (sound, damaged) = (save().await, save().await);
    fake.store.tamper_with_credential(damaged, |sealed| sealed.information = Blob::from_bytes(b"x".to_vec()));

    let page = vault.list(&editor, Default::default(), Default::default()).await.unwrap();
    let shown: Vec<_> = page.items.iter().map(|item| (item.id, item.information.is_some())).collect();
    assert_eq!(shown, [(damaged, false), (sound, true)]);
    assert!(vault.show(&editor, damaged).await.unwrap().information.is_none());
    let counted = fake.events.events().into_iter().filter(
        |event| matches!(event, Event::IntegrityFailure { table: "credentials", id } if *id == damaged.to_string()),
    );
    assert_eq!(counted.count(), 2, "each look at it is counted");
}
