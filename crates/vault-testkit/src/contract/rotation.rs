//! Cases of the rotation of an organization's key.

use super::ContractStore;
use super::tools::Settled as _;
use super::world::World;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::operation::Operation;
use vault_core::organization::{
    CountKeyUses, CountSealed, DestroyOrganizationKey, MoveCredentials, MovedCredentials, ReadKeyUses,
    RotateOrganization,
};
use vault_core::port::IdGenerator as _;
use vault_core::principal::Principal;

impl World<'_> {
    async fn by_operator<O: Operation>(&self, operation: O) -> O::Outcome {
        self.operate(&Principal::Operator, operation).await.unwrap()
    }

    async fn sealed_with(&self, key: KeyId) -> i64 {
        self.by_operator(CountSealed(self.organization, key)).await
    }

    async fn step(&self, after: Option<CredentialId>, limit: usize) -> MovedCredentials {
        self.by_operator(MoveCredentials { organization: self.organization, after, limit }).await
    }
}

/// A rotation moves the credentials with all versions in steps, and keeps revision and times. Credentials that are saved and changed in
/// the meantime have the new key, or are moved too.
pub async fn credentials_are_moved_in_steps(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let mut saved = vec![world.replaced(&principal).await];
    for _ in 0..4 {
        saved.push(world.saved(&principal).await);
    }
    let theirs = other.saved(&other.embedder()).await;
    let before = world.versions(&principal, saved[0]).await;
    let old = world.keys().await.active.id;
    let started = world.by_operator(RotateOrganization(world.organization)).await;
    assert_eq!((started.is_new, world.keys().await.active.id), (true, started.key));
    let again = world.by_operator(RotateOrganization(world.organization)).await;
    assert_eq!((again.is_new, again.key), (false, started.key));

    let changed = world.versions(&principal, saved[4]).await;
    world.changed(world.replacement(&principal, &changed)).await;
    world.saved(&principal).await;
    assert_eq!((world.sealed_with(old).await, world.sealed_with(started.key).await), (5, 1));
    let first = world.step(None, 2).await;
    assert_eq!((first.last, first.moved, &first.damaged[..]), (Some(saved[1]), 2, &[][..]));
    let rest = world.step(first.last, 9).await;
    assert_eq!((rest.last, rest.moved), (Some(saved[4]), 3));
    assert_eq!(world.step(None, 9).await, MovedCredentials::default());
    assert_eq!((world.sealed_with(old).await, world.sealed_with(started.key).await), (0, 6));

    assert!(world.by_operator(DestroyOrganizationKey(world.organization, old)).await);
    for key in [old, started.key] {
        assert!(!world.by_operator(DestroyOrganizationKey(world.organization, key)).await, "no longer, or active");
    }
    assert!(world.keys().await.retiring.is_empty());
    let after = world.opened(&principal, saved[0]).await;
    assert!(after.card.is_ok());
    assert_eq!((after.rows.current.revision, after.rows.current.updated_at), (2, before.current.updated_at));
    assert_eq!(after.rows.others, before.others);
    assert_eq!(other.show(&other.embedder(), theirs).await.unwrap().card.key(), Some(other.keys().await.active.id));
    for action in [AuditAction::OrganizationKeyReplaced, AuditAction::OrganizationKeyDestroyed] {
        assert_eq!(world.audited(action).await, 1);
    }
    let nonexistent = RotateOrganization(OrganizationId::from_uuid(world.ids.random()));
    let refused = world.operate(&Principal::Operator, nonexistent).await.decided();
    assert_eq!(refused, Err(Refusal::NoOrganization));
}

/// Uses of the active key are added up. The one that reaches the limit replaces the key, whose successor has none. Uses of another key
/// are not counted.
pub async fn key_is_replaced_at_its_limit(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (organization, key) = (world.organization, world.keys().await.active.id);
    let count = async |key, uses| {
        world.by_operator(CountKeyUses { organization, key, uses, replaced_at: 10 }).await;
        world.by_operator(ReadKeyUses(organization)).await
    };
    assert_eq!(count(key, 4).await, 4);
    assert_eq!(count(KeyId::from_uuid(world.ids.random()), 4).await, 4);
    assert_eq!(count(key, 5).await, 9);
    assert_eq!(world.keys().await.active.id, key);
    assert_eq!(count(key, 1).await, 0);
    let keys = world.keys().await;
    assert_ne!(keys.active.id, key);
    assert_eq!(keys.retiring.iter().map(|key| key.id).collect::<Vec<_>>(), [key]);
    assert_eq!(count(key, 50).await, 0);
    assert_eq!(world.audited(AuditAction::OrganizationKeyReplaced).await, 1);
}
