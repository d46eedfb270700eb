//! Cases of [`KeyRepository`](vault_core::port::KeyRepository).

use super::ContractStore;
use super::tools::{blob, race};
use super::world::World;
use crate::crypto::FakeDigester;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::id::{InstanceId, KeyId};
use vault_core::operation::{InstanceChange, ReplaceInstance, ReplacedInstance};
use vault_core::port::{CreateInstance, IdGenerator, KeyedDigester};
use vault_core::principal::Principal;
use vault_core::sealed::{Blob, InstanceRecord};
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
            restore_epoch: 0,
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
