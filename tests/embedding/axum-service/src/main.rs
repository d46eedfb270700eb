//! Runs the service on port 8080, with one user: `curl -b session=let-me-in http://127.0.0.1:8080/credentials`.

use axum_service::router;
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use vault_core::id::AccountId;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_embed::{Database, RootKey};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let opened = vault_embed::open_or_create(RootKey::file("root.key"), Database::sqlite("vault.db")).await?;
    let acme = opened.operator().ensure_organization("acme").await?;
    let user = Principal::embedder(acme.id, AccountId::from_bytes(*b"user number 0001"), Role::Editor);
    let sessions = Arc::new(HashMap::from([("let-me-in".to_owned(), user)]));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    axum::serve(listener, router(opened.vault(), sessions)).with_graceful_shutdown(stop).await?;
    opened.close().await?; // stops the maintenance, and records how often lists were read
    Ok(())
}
