//! A service of your own with a vault in it: it saves a credential for one of its users and lists what the user's
//! organization has. Keys and database are real, in a scratch directory.
//!
//! Run it with `cargo run --package vault-embed --example embed`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use vault_core::credential::{CredentialData, CredentialType, DataPolicy};
use vault_core::cursor::PageRequest;
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::AccountId;
use vault_core::json::{self, Limits};
use vault_core::namespace::Namespace;
use vault_core::principal::{EmbedderPrincipal, Principal};
use vault_core::role::Role;
use vault_core::usecase::{IdempotencyKey, SaveRequest};
use vault_embed::{Database, RootKey};

/// The data in a request's body, held to the same rules as over HTTP.
fn parse(kind: CredentialType, body: &[u8]) -> Result<CredentialData, Vec<FieldError>> {
    let document = json::parse(body, Limits::REQUEST)
        .map_err(|error| vec![FieldError::new("", FieldCode::Malformed, error.to_string())])?;
    if !document.duplicates.is_empty() {
        return Err(document.duplicates);
    }
    CredentialData::parse(kind, document.root, "/data", DataPolicy::default())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?; // a service has a directory of its own, and another one for the root key
    let root_key = RootKey::file(directory.path().join("root.key"));
    let opened = vault_embed::open_or_create(root_key, Database::sqlite(directory.path().join("vault.db"))).await?;
    let organization = opened.operator().create_organization("Example").await?;
    let vault = opened.vault().limit(1_000);

    // This service knows its users by itself. It says for whom it acts; the store still refuses a closed organization.
    let user = AccountId::from_uuid(opened.ports().ambient.ids.random());
    let principal =
        Principal::Embedder(EmbedderPrincipal { organization: organization.id, account: user, role: Role::Editor });

    let body = br#"{
        "access_key_id": "AKIAQ3EGVNCHZ2LWJ5TM",
        "secret_access_key": "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",
        "bucket": "nightly-imports"
    }"#;
    let data = parse(CredentialType::S3, body).map_err(|flaws| format!("{flaws:?}"))?; // flaws never hold values
    let request = SaveRequest {
        idempotency: Some(IdempotencyKey::parse("first-import")?),
        ..SaveRequest::new(Namespace::parse("imports/nightly", "/namespace")?, data)
    };
    let saved = vault.save(&principal, request).await?;
    println!("saved {saved}");

    let page = vault.list(&principal, Default::default(), PageRequest { limit: 100, cursor: None }).await?;
    for credential in &page.items {
        // Nothing where the row is damaged: it costs itself, not the list.
        let information = credential.information.as_ref().map_or("damaged", |information| information.as_json());
        println!("{} {} {information}", credential.id, credential.namespace);
    }

    // Ends the upkeep, records how often lists were read, and closes the database.
    opened.close().await?;
    Ok(())
}
