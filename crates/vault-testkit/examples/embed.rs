//! A service of your own around the use cases of `vault-core`: it saves a credential for one of its users and lists
//! what the user's organization has. Everything lies in memory here, and nothing is secured: in place of the
//! adapters of `vault-testkit`, a real service gives the same ports those of `vault-crypto` and `vault-diesel`, or
//! its own.
//!
//! Run it with `cargo run --package vault-testkit --example embed`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use vault_core::credential::{CredentialData, CredentialType, DataPolicy};
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::AccountId;
use vault_core::json::{self, Limits};
use vault_core::namespace::Namespace;
use vault_core::principal::{EmbedderPrincipal, Principal};
use vault_core::role::Role;
use vault_core::usecase::{Ambient, AuditTally, IdempotencyKey, ListRequest, Operator, SaveRequest, Vault};
use vault_testkit::clock::{ManualClock, RecordingEvents, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, PlainSealer};
use vault_testkit::memory::MemoryStore;

/// What this service is made of.
struct Service {
    ambient: Ambient,
    operator: Operator,
    vault: Vault,
}

impl Service {
    /// Gives the vault its ports. This is the only place that names adapters.
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let ids = Arc::new(SequentialIds::default());
        let digester = Arc::new(FakeDigester::default());
        let sealer = Arc::new(PlainSealer::new(store.clone(), ids.clone()));
        let ambient = Ambient {
            clock: Arc::new(ManualClock::default()),
            ids,
            events: Arc::new(RecordingEvents::default()),
            audit: Arc::new(FakeAuditSealer),
        };
        let tally = Arc::new(AuditTally::new(ambient.clone(), store.clone()));
        Self {
            operator: Operator::new(ambient.clone(), tally.clone(), store.clone(), sealer.clone()),
            vault: Vault::new(ambient.clone(), tally, store, sealer.clone(), sealer, digester).limit(1_000),
            ambient,
        }
    }
}

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
    let service = Service::new();
    let organization = service.operator.create_organization("Example").await?;

    // This service knows its users by itself. It says for whom it acts; the store still refuses a closed organization.
    let user = AccountId::from_uuid(service.ambient.ids.random());
    let principal =
        Principal::Embedder(EmbedderPrincipal { organization: organization.id, account: user, role: Role::Editor });

    let body = br#"{
        "access_key_id": "AKIAIOSFODNN7EXAMPLE",
        "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "bucket": "nightly-imports"
    }"#;
    let data = parse(CredentialType::S3, body).map_err(|flaws| format!("{flaws:?}"))?; // flaws never hold values
    let request = SaveRequest {
        namespace: Namespace::parse("imports/nightly", "/namespace")?,
        data,
        idempotency: Some(IdempotencyKey::parse("first-import")?),
        verify: false,
    };
    let saved = service.vault.save(&principal, request).await?;
    println!("saved {saved}");

    let page =
        service.vault.list(&principal, ListRequest { filter: Default::default(), limit: 100, cursor: None }).await?;
    for credential in &page.credentials {
        let Some(information) = &credential.information else { continue }; // damaged
        println!("{} {} {}", credential.id, credential.namespace, information.as_json());
    }

    // Lists are counted and recorded once a minute, and at the end.
    service.operator.record_counts(true).await?;
    Ok(())
}
