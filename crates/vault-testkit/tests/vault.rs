//! Tests of the vault with the store in memory.

use vault_core::activation::VendRule;
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialData, CredentialType, Description};
use vault_core::id::AccountId;
use vault_core::namespace::Namespace;
use vault_core::port::Event;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;
use vault_core::usecase::{IdempotencyKey, NewCredential};
use vault_core::{Error, Refusal};
use vault_testkit::fake::FakeVault;

/// Returns a vault with one organization, and a user who saves in it.
async fn setting() -> (FakeVault, Principal) {
    let fake = FakeVault::new();
    let organization = fake.operator().ensure_organization("Acme").await.unwrap().id;
    (fake, Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor))
}

fn link(query: &str) -> CredentialData {
    let json = format!(r#"{{"url":"https://files.example/a{query}"}}"#);
    CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap()
}

fn request(query: &str) -> NewCredential {
    NewCredential::new(Namespace::parse("imports", "").unwrap(), link(query))
}

#[tokio::test]
async fn repeated_save_is_reported_once() {
    let (fake, editor) = setting().await;
    let request = || NewCredential { idempotency: Some(IdempotencyKey::parse("first").unwrap()), ..request("") };
    let saved = fake.vault().save(&editor, request()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(fake.events.recorded(AuditAction::CredentialSaved), 1);
        assert_eq!(fake.vault().save(&editor, request()).await.unwrap(), saved);
    }
    assert_eq!(fake.events.recorded(AuditAction::CredentialSaved), 1);
}

/// All fields of a request count: a different request with the same idempotency key is rejected.
#[tokio::test]
async fn idempotency_key_is_for_one_request() {
    let described = |text: &str| {
        let description = Description::parse(text, "").unwrap();
        NewCredential { description: Some(description), ..request("") }
    };
    let ruled = |vend| {
        let json = br#"{"access_key_id":"AKIA2TESTONLY7SAMPLE","bucket":"nightly","role_arn":"arn:aws:iam::123456789012:role/batch","secret_access_key":"plain secret"}"#;
        let data = CredentialData::from_canonical_json(CredentialType::S3, json).unwrap();
        NewCredential { vend, ..NewCredential::new(Namespace::parse("imports", "").unwrap(), data) }
    };
    let end = |seconds: i64| NewCredential { expires_at: Some(Timestamp::from_millis(seconds * 1_000)), ..request("") };
    let named = |name: &str| NewCredential { namespace: Namespace::parse(name, "").unwrap(), ..request("") };
    let requests = || {
        let vend = [VendRule::Any, VendRule::Short].map(ruled);
        let described = [described("one"), described("two")];
        vend.into_iter().chain(described).chain([
            request(""),
            end(4_000_000_000),
            end(4_000_000_001),
            named("exports"),
            request("?2"),
        ])
    };
    for (index, first) in requests().enumerate() {
        let (fake, editor) = setting().await;
        let key = || Some(IdempotencyKey::parse("first").unwrap());
        fake.vault().save(&editor, NewCredential { idempotency: key(), ..first }).await.unwrap();
        for (other, second) in requests().enumerate() {
            let again = fake.vault().save(&editor, NewCredential { idempotency: key(), ..second }).await;
            match again {
                Ok(_) => assert_eq!(index, other),
                Err(Error::Refused(Refusal::IdempotencyMismatch)) => assert_ne!(index, other),
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

#[tokio::test]
async fn reads_of_a_vault_are_counted() {
    let (fake, editor) = setting().await;
    let credential = fake.vault().save(&editor, request("")).await.unwrap();
    for _ in 0..2 {
        fake.vault().list(&editor, Default::default(), Default::default()).await.unwrap();
    }
    fake.vault().show(&editor, credential).await.unwrap();
    fake.vault().versions(&editor, credential).await.unwrap();
    fake.tally.flush(true).await.unwrap();
    let counted = |action| fake.store.audit().into_iter().filter(|one| one.action == action).map(|one| one.count).sum();
    let counts: [i64; 2] = [counted(AuditAction::CredentialsListed), counted(AuditAction::CredentialShown)];
    assert_eq!(counts, [2, 2]);
}

#[tokio::test]
async fn damaged_row_does_not_fail_its_page() {
    let fake = FakeVault::new();
    let vault = fake.vault();
    let organization = fake.operator().ensure_organization("Acme").await.unwrap().id;
    let editor = Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor);
    let save = async || {
        let json = br#"{"url":"https://files.example/a"}"#;
        let data = CredentialData::from_canonical_json(CredentialType::DirectLink, json).unwrap();
        let namespace = Namespace::parse("imports", "").unwrap();
        vault.save(&editor, NewCredential::new(namespace, data)).await.unwrap()
    };
    let (sound, damaged) = (save().await, save().await);
    fake.store.tamper_with_row(damaged, |row| row.card = Blob::from_bytes(b"x".to_vec()));

    let page = vault.list(&editor, Default::default(), Default::default()).await.unwrap();
    let shown: Vec<_> = page.items.iter().map(|item| (item.id, item.information.is_some())).collect();
    assert_eq!(shown, [(damaged, false), (sound, true)]);
    assert!(vault.show(&editor, damaged).await.unwrap().information.is_none());
    let counted = fake.events.events().into_iter().filter(
        |event| matches!(event, Event::IntegrityFailure { table: "credentials", id } if *id == damaged.to_string()),
    );
    assert_eq!(counted.count(), 2, "each look at it is counted");
}
