//! A service with an embedded vault: it saves a credential for one of its users, and lists the credentials of its
//! organization. Keys and database are real, in a temporary directory.
//!
//! Run it with `cargo run --package vault-embed --example embed`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::AccountId;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::{IdempotencyKey, NewCredential};
use vault_embed::{Database, RootKey};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?; // a service has permanent, separate directories for data and root key
    let root_key = RootKey::file(directory.path().join("root.key"));
    let opened = vault_embed::open_or_create(root_key, Database::sqlite(directory.path().join("vault.db"))).await?;
    let (vault, acme) = (opened.vault(), opened.operator().ensure_organization("Acme").await?);

    // The service has authenticated the user. The store only checks that the organization is active.
    let user = AccountId::from_bytes(*b"user number 0001");
    let who = Principal::embedder(acme.id, user, Role::Editor);

    let body = br#"{
        "access_key_id": "AKIAQ3EGVNCHZ2LWJ5TM",
        "secret_access_key": "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",
        "bucket": "nightly-imports"
    }"#;
    let data = CredentialData::from_json(CredentialType::S3, body)?; // errors contain no values
    let request = NewCredential {
        idempotency: Some(IdempotencyKey::parse("first-import")?),
        ..NewCredential::new("imports/nightly".parse()?, data)
    };
    println!("saved {}", vault.save(&who, request).await?);

    for credential in vault.list(&who, Default::default(), Default::default()).await?.items {
        // `None` if the row is damaged. The other rows are listed.
        let information = credential.information.as_ref().map_or("damaged", |information| information.as_json());
        println!("{} {} {information}", credential.id, credential.namespace);
    }
    opened.close().await?; // stops maintenance, writes counted audit entries, and closes the database
    Ok(())
}
