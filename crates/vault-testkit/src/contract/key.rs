//! Cases of [`KeyRepository`](vault_core::port::KeyRepository).

use super::ContractStore;
use super::tools::{blob, race};
use super::world::World;
use crate::crypto::FakeDigester;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::id::{InstanceId, KeyId, OrganizationId};
use vault_core::operation::{InstanceChange, ReplaceInstance, ReplacedInstance};
use vault_core::port::{CreateInstance, IdGenerator, KeyedDigester, ReserveKeyUses};
use vault_core::principal::Principal;
use vault_core::sealed::{Blob, InstanceRecord, KeyState, OrganizationKeyRecord, OrganizationKeys};
use vault_core::time::Timestamp;

/// Of concurrent creations of the instance at most one succeeds, and none after it.
pub async fn instance_is_created_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let commands: Vec<_> = (0..16).map(|_| instance(&world)).collect();
    let made = race(commands.clone().into_iter().map(|command| {
        let store = Arc::clone(&world.store);
        async move { store.create_instance(command).await.unwrap() }
    }))
    .await;
    // None succeeds if another test created the instance in the same database earlier.
    let winners: Vec<_> = commands.iter().zip(&made).filter(|(_, made)| **made).map(|(command, _)| command).collect();
    assert!(winners.len() <= 1);
    assert_eq!(world.audited(AuditAction::InstanceCreated).await, winners.len());

    let record = world.store.instance().await.unwrap().expect("now there is one");
    if let [winner] = winners[..] {
        assert_eq!(made_as(&record), made_as(&winner.instance));
    }
    assert!(!world.store.create_instance(instance(&world)).await.unwrap());
    assert_eq!(made_as(&world.store.instance().await.unwrap().unwrap()), made_as(&record));
    assert_eq!(world.audited(AuditAction::InstanceCreated).await, winners.len());
}

/// The root key is replaced once, by a command that names the current row, and nothing else in the row changes. The
/// database may have other users that do the same.
pub async fn root_key_is_replaced_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let _ = world.store.create_instance(instance(&world)).await.unwrap();
    let read = world.store.instance().await.unwrap().expect("now there is one");
    let commands: Vec<_> = (0..16).map(|_| replace_root(&world, &read)).collect();
    let replaced = race(commands.clone().into_iter().map(|command| {
        let replaced = world.running(&world.store, Principal::Operator, command);
        async move { replaced.await.unwrap() == ReplacedInstance::Replaced }
    }))
    .await;
    let winners: Vec<_> =
        commands.iter().zip(&replaced).filter(|(_, replaced)| **replaced).map(|(command, _)| &command.next).collect();
    assert!(winners.len() <= 1);
    let now = world.store.instance().await.unwrap().unwrap();
    if let [winner] = winners[..] {
        assert_eq!(made_as(&now), made_as(&read));
        let expected = InstanceRecord { root_key: winner.root_key, wrapped: winner.wrapped.clone(), ..read.clone() };
        assert_eq!(now, expected);
    }
    for wrong in [
        InstanceRecord { root_key: KeyId::from_uuid(world.ids.random()), ..now.clone() },
        InstanceRecord { instance_key: KeyId::from_uuid(world.ids.random()), ..now.clone() },
        InstanceRecord { wrapped: blob("another wrap"), ..now.clone() },
        InstanceRecord { id: InstanceId::from_uuid(world.ids.random()), ..now.clone() },
    ] {
        let replaced = world.operate(&Principal::Operator, replace_root(&world, &wrong)).await.unwrap();
        assert_eq!(replaced, ReplacedInstance::Changed);
    }
}

/// An organization has the keys with which it was created.
pub async fn organization_keys_are_read(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let command = world.create_organization(
        OrganizationId::from_uuid(world.ids.random()),
        KeyId::from_uuid(world.ids.random()),
        &super::tools::name(&format!("Keys {}", world.ids.random())),
    );
    let (id, keys) = (command.organization.id, command.keys.clone());
    world.operate(&Principal::Operator, command).await.unwrap();
    assert_eq!(world.store.organization_keys(id).await.unwrap(), Some(keys));
    let nonexistent = OrganizationId::from_uuid(world.ids.random());
    assert_eq!(world.store.organization_keys(nonexistent).await.unwrap(), None);
}

/// A block of key uses is reserved by a command that specifies the current count. If several do, exactly one succeeds.
pub async fn block_of_uses_is_reserved_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for from in [0, 65_536, 131_072] {
        let taken = race((0..16).map(|_| {
            let (store, command) = (Arc::clone(&world.store), take(&world, from));
            async move { store.reserve_key_uses(command).await.unwrap() }
        }))
        .await;
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
        assert_eq!(uses(&world).await, from + 65_536);
    }
    for stale in [0, 65_536, 196_607, 196_609, -1] {
        assert!(!world.store.reserve_key_uses(take(&world, stale)).await.unwrap());
    }
    assert_eq!(uses(&world).await, 196_608);
}

/// Uses can be reserved only for the organization's active key.
pub async fn uses_are_reserved_only_of_active_key(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let strays = [
        ReserveKeyUses { organization: other.organization, ..take(&world, 0) },
        ReserveKeyUses { key: other.key, ..take(&world, 0) },
        ReserveKeyUses { key: KeyId::from_uuid(world.ids.random()), ..take(&world, 0) },
    ];
    for stray in strays {
        assert!(!world.store.reserve_key_uses(stray).await.unwrap());
    }
    assert!(world.store.replace_organization_key(world.replace_key(world.key)).await.unwrap());
    assert!(!world.store.reserve_key_uses(take(&world, 0)).await.unwrap(), "it is retiring");
    assert_eq!((uses(&world).await, uses(&other).await), (0, 0));
}

/// After a replacement, the new key is active and the previous key only decrypts. If several requests replace a key,
/// exactly one succeeds.
pub async fn key_is_replaced_once(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let before = keys(&world).await;
    world.clock.advance_seconds(1);
    let commands: Vec<_> = (0..16).map(|_| world.replace_key(world.key)).collect();
    let replaced = race(commands.clone().into_iter().map(|command| {
        let store = Arc::clone(&world.store);
        async move { store.replace_organization_key(command).await.unwrap() }
    }))
    .await;
    let winners: Vec<_> =
        commands.iter().zip(&replaced).filter(|(_, done)| **done).map(|(command, _)| command).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(world.audited(AuditAction::OrganizationKeyReplaced).await, 1);

    let after = keys(&world).await;
    assert_eq!(after.fingerprint_key, before.fingerprint_key);
    assert_eq!(after.fingerprint_wrapped, before.fingerprint_wrapped);
    assert_eq!(after.keys.len(), 2);
    let retiring = OrganizationKeyRecord { state: KeyState::Retiring, ..before.keys[0].clone() };
    assert!(after.keys.contains(&retiring) && after.keys.contains(&winners[0].next));

    for current in [world.key, other.key, KeyId::from_uuid(world.ids.random())] {
        assert!(!world.store.replace_organization_key(world.replace_key(current)).await.unwrap());
    }
    assert_eq!(keys(&world).await.keys.len(), 2);
    assert_eq!(keys(&other).await.keys[0].state, KeyState::Active);
    assert!(world.store.replace_organization_key(world.replace_key(winners[0].next.id)).await.unwrap());
    let active = keys(&world).await.keys.iter().filter(|key| key.state == KeyState::Active).count();
    assert_eq!((active, world.audited(AuditAction::OrganizationKeyReplaced).await), (1, 2));
}

pub(super) fn instance(world: &World<'_>) -> CreateInstance {
    let now = world.now();
    CreateInstance {
        instance: InstanceRecord {
            id: InstanceId::from_uuid(world.ids.random()),
            root_key: KeyId::from_uuid(world.ids.random()),
            // Other cases that run at the same time store rows signed under it.
            instance_key: FakeDigester::default().active_key(),
            wrapped: blob("instance key"),
            keyring: blob("keyring"),
            created_at: now,
        },
        audit: world.audit(AuditAction::InstanceCreated),
    }
}

/// Returns the fields of an instance that a root key replacement preserves.
fn made_as(record: &InstanceRecord) -> (InstanceId, KeyId, &Blob, Timestamp) {
    (record.id, record.instance_key, &record.keyring, record.created_at)
}

fn replace_root(world: &World<'_>, current: &InstanceRecord) -> ReplaceInstance {
    let next = InstanceRecord {
        root_key: KeyId::from_uuid(world.ids.random()),
        wrapped: blob(&format!("instance key under {}", world.ids.random())),
        ..current.clone()
    };
    ReplaceInstance { current: current.clone(), next, change: InstanceChange::RootKey }
}

fn take(world: &World<'_>, from: i64) -> ReserveKeyUses {
    ReserveKeyUses { organization: world.organization, key: world.key, from, block: 65_536 }
}

async fn keys(world: &World<'_>) -> OrganizationKeys {
    world.store.organization_keys(world.organization).await.unwrap().expect("the organization is there")
}

/// Returns the number of reserved uses of the world's first key.
async fn uses(world: &World<'_>) -> i64 {
    keys(world).await.keys.iter().find(|key| key.id == world.key).unwrap().uses
}
