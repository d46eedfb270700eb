//! Cases of [`IssuerRepository`](vault_core::port::IssuerRepository).

use super::ContractStore;
use super::tools::race;
use super::world::World;
use crate::crypto::FakeDigester;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::id::IssuerId;
use vault_core::identity::{Issuer, IssuerName, KeySource, StoredIssuer};
use vault_core::port::{IdGenerator as _, StoreError};
use vault_core::principal::Principal;
use vault_core::{Command, Refusal};

const OPERATOR: Principal = Principal::Operator;

/// If several requests add an issuer with the same name, exactly one succeeds. The issuer is found, listed, and removed
/// once.
pub async fn parallel_additions_of_one_issuer_create_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let rows: Vec<_> = (0..8).map(|nth| issuer(&world, "raced", nth)).collect();
    let name = rows[0].issuer.name.clone();
    let added = race(rows.iter().map(|row| {
        let (store, command) = (Arc::clone(&world.store), addition(&world, row));
        async move { store.add_issuer(command).await }
    }))
    .await;
    let created: Vec<_> =
        rows.iter().zip(&added).filter(|(_, added)| added.is_ok()).map(|(row, _)| row.clone()).collect();
    assert_eq!(created.len(), 1);
    let is_refused = |added: &Result<(), StoreError>| matches!(added, Err(StoreError::Refused(Refusal::IssuerExists)));
    assert_eq!(added.iter().filter(|added| is_refused(added)).count(), 7);
    assert_eq!(world.store.find_issuers(vec![name.clone()]).await.unwrap(), created);
    assert!(world.store.list_issuers().await.unwrap().contains(&created[0]));
    assert_eq!(world.audited(AuditAction::IssuerAdded).await, 1);

    let removals = race((0..4).map(|_| {
        let (store, command) =
            (Arc::clone(&world.store), world.command(&OPERATOR, AuditAction::IssuerRemoved, created[0].issuer.id));
        async move { store.remove_issuer(command).await.unwrap() }
    }))
    .await;
    assert_eq!(removals.iter().filter(|removed| **removed).count(), 1);
    assert_eq!(world.store.find_issuers(vec![name]).await.unwrap(), []);
    assert_eq!(world.audited(AuditAction::IssuerRemoved).await, 1);
}

/// The keys of an issuer are recorded only if its row is unchanged since it was read.
pub async fn issuer_keys_are_recorded_only_in_row_read(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let first = issuer(&world, "first", 0);
    let other = issuer(&world, "other", 0);
    for row in [&first, &other] {
        world.store.add_issuer(addition(&world, row)).await.unwrap();
    }
    let next = |keys: &str, seconds| {
        let digester = FakeDigester::default();
        StoredIssuer::sign(first.issuer.clone(), keys.to_owned(), world.now().plus_seconds(seconds), &digester)
    };
    let (second, late) = (next("{\"keys\":[2]}", 1), next("{\"keys\":[3]}", 2));
    assert!(world.store.record_keys(first.clone(), second.clone()).await.unwrap());
    assert!(!world.store.record_keys(first.clone(), late).await.unwrap(), "the row has changed");
    let failed =
        StoredIssuer { failure: "unreachable".to_owned(), asked_at: world.now().plus_seconds(3), ..second.clone() };
    assert!(world.store.record_keys(second, failed.clone()).await.unwrap());
    let names = vec![first.issuer.name.clone(), other.issuer.name.clone()];
    let mut found = world.store.find_issuers(names).await.unwrap();
    found.sort_by_key(|row| row.issuer.name != first.issuer.name);
    assert_eq!(found, [failed, other]);
}

fn addition(world: &World<'_>, row: &StoredIssuer) -> Command<StoredIssuer> {
    world.command(&OPERATOR, AuditAction::IssuerAdded, row.clone())
}

/// Returns an issuer with a name that no other case uses. `nth` distinguishes rows with the same name.
fn issuer(world: &World<'_>, prefix: &str, nth: usize) -> StoredIssuer {
    let name = format!("{prefix}-{}", world.organization);
    let issuer = Issuer {
        id: IssuerId::from_uuid(world.ids.random()),
        name: IssuerName::parse(&name, "").unwrap(),
        url: format!("https://issuer.example/{nth}"),
        source: KeySource::Discovery("https://keys.example".to_owned()),
        ca: String::new(),
        required: Vec::new(),
        organizations: vec![world.organization],
        created_at: world.now(),
    };
    StoredIssuer::sign(issuer, "{\"keys\":[]}".to_owned(), world.now(), &FakeDigester::default())
}
