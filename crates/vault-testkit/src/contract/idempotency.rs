//! Cases of saving under an [`Idempotency`] key.

use super::ContractStore;
use super::saving::Saving;
use super::tools::{Settled, race, request_digest, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use std::collections::HashSet;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::credential::FindRequest;
use vault_core::id::CredentialId;
use vault_core::organization::OrganizationState;
use vault_core::port::Idempotency;
use vault_core::principal::{Denial, Principal};
use vault_core::{Command, Error, Refusal};

/// A repeated request has no effect and names the credential of the first one; a different request is rejected.
pub async fn request_has_one_effect(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let first = keyed(&world, &principal, "key", "body");
    let created = first.payload.id;
    world.store.save_credential(first).await.unwrap();
    for _ in 0..3 {
        world.clock.advance_seconds(3_600);
        assert_eq!(save(&world, &principal, "key", "body").await, Ok(created));
        assert_eq!(save(&world, &principal, "key", "other body").await, Err(Refusal::IdempotencyMismatch));
    }
    assert_eq!(world.listed(&principal).await, [created]);
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, 1);
}

/// Concurrent repetitions of a request have one effect, and all name it.
pub async fn request_has_one_effect_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let outcomes = race((0..16).map(|_| {
        let (store, command) = (Arc::clone(&world.store), keyed(&world, &principal, "key", "body"));
        async move { store.save_credential(command).await.decided() }
    }))
    .await;
    let listed = world.listed(&principal).await;
    assert_eq!(listed.len(), 1);
    assert!(outcomes.iter().all(|outcome| *outcome == Ok(listed[0])), "{outcomes:?}");
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, 1);
}

/// Of concurrent different requests with one key exactly one is executed, and the others are rejected.
pub async fn parallel_requests_under_one_key_have_one_effect(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let outcomes = race((0..16).map(|body| {
        let (store, command) = (Arc::clone(&world.store), keyed(&world, &principal, "key", &format!("body {body}")));
        async move { store.save_credential(command).await.decided() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(Refusal::IdempotencyMismatch)).count(), 15);
    assert_eq!(world.listed(&principal).await.len(), 1);
}

/// A key belongs to one account: other users and organizations may use the same text.
pub async fn keys_are_independent_per_account(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let mut principals = Vec::new();
    for world in [&world, &other] {
        principals.push((world, world.embedder()));
        principals.push((world, world.embedder()));
    }
    for (index, (world, principal)) in principals.iter().enumerate() {
        save(world, principal, "key", &format!("body {index}")).await.unwrap();
    }
    assert_eq!(world.listed(&principals[0].1).await.len(), 2);
}

/// Keys are compared exactly and may contain any visible ASCII character, up to 255.
pub async fn keys_are_compared_exactly(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let longest = "k".repeat(255);
    let mut created = HashSet::new();
    for key in ["Key", "key", "KEY", "%", "_", "'\\\"", &longest, &longest[1..]] {
        assert!(created.insert(save(&world, &principal, key, "body").await.unwrap()), "{key}");
    }
}

/// A repeated request gets the response of the first one, even if credential, key or limit have changed.
pub async fn replay_outlives_created_credential(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let (kept, deleted) = (keyed(&world, &principal, "kept", "body"), keyed(&world, &principal, "deleted", "body"));
    let (kept_id, deleted_id): (CredentialId, CredentialId) = (kept.payload.id, deleted.payload.id);
    for command in [kept, deleted] {
        world.store.save_credential(command).await.unwrap();
    }
    world.delete(&principal, deleted_id).await.unwrap();
    world.replace_key().await;
    for (key, id) in [("kept", kept_id), ("deleted", deleted_id)] {
        let again = with(keyed(&world, &principal, key, "body"), |save| save.limit = 0);
        assert_eq!(world.store.save_credential(again).await.decided(), Ok(id));
        assert_eq!(save(&world, &principal, key, "other body").await, Err(Refusal::IdempotencyMismatch));
    }
    assert_eq!(world.listed(&principal).await, [kept_id]);
}

/// The result of an earlier save with a key is found without saving; a principal without permission finds nothing.
pub async fn earlier_save_is_found(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let find = async |body: &str| {
        let idempotency = keyed(&world, &principal, "key", body).payload.new.idempotency;
        world.operate(&principal, FindRequest { organization: world.organization, idempotency }).await
    };
    assert_eq!(find("body").await.unwrap(), None);
    let command = keyed(&world, &principal, "key", "body");
    let created = command.payload.id;
    world.store.save_credential(command).await.unwrap();
    assert_eq!(find("body").await.unwrap(), Some((created, 1)));
    assert!(matches!(find("other body").await, Err(Error::Refused(Refusal::IdempotencyMismatch))));
    world.set_state(OrganizationState::Disabled).await;
    assert!(matches!(find("body").await, Err(Error::Denied(Denial::OrganizationDisabled))));
}

/// A request that was not executed does not use up its key.
pub async fn refused_request_leaves_its_key_free(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let full = with(keyed(&world, &principal, "key", "one body"), |save| save.limit = 0);
    let limit_reached = Refusal::LimitReached { what: "credentials", limit: 0 };
    assert_eq!(world.store.save_credential(full).await.decided(), Err(limit_reached));
    save(&world, &principal, "key", "body").await.unwrap();
}

/// Returns a save with an idempotency key.
pub(super) fn keyed(world: &World<'_>, principal: &Principal, key: &str, body: &str) -> Command<Saving> {
    let account = principal.account().unwrap();
    let idempotency = Idempotency { account, key: key.to_owned(), body: request_digest(body).into() };
    with(world.save(principal), |save| save.new.idempotency = Some(idempotency))
}

async fn save(world: &World<'_>, principal: &Principal, key: &str, body: &str) -> Result<CredentialId, Refusal> {
    world.store.save_credential(keyed(world, principal, key, body)).await.decided()
}
