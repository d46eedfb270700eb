//! Cases of [`OrganizationRepository`](vault_core::port::OrganizationRepository).

use super::ContractStore;
use super::tools::{name, race};
use super::world::World;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::organization::{Organization, OrganizationState};
use vault_core::port::{CreateOrganization, DeleteOrganization, IdGenerator, SetOrganizationState};

/// A name that differs in ASCII case only is the same name; the second creation changes nothing.
pub async fn organization_name_is_unique_ignoring_case(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let command = another(&world, &world.name.as_str().to_ascii_uppercase());
    let refused = command.organization.id;
    assert!(!world.store.create_organization(command).await.unwrap());
    assert_eq!(world.store.organization(refused).await.unwrap(), None);
    assert_eq!(world.store.organization_keys(refused).await.unwrap(), None);
    assert_eq!(world.audited_in(refused, AuditAction::OrganizationCreated).await, 0);
    assert_eq!(world.audited(AuditAction::OrganizationCreated).await, 1);
    let found = world.store.find_organization(&world.name).await.unwrap().unwrap();
    assert_eq!((found.id, found.name), (world.organization, world.name.clone()));
}

/// If several requests create an organization with the same name, exactly one succeeds.
pub async fn parallel_creations_of_one_name_create_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let taken = format!("Parallel {}", world.ids.random());
    let commands: Vec<_> = (0..16).map(|_| another(&world, &taken)).collect();
    let ids: Vec<_> = commands.iter().map(|command| command.organization.id).collect();
    let created = race(commands.into_iter().map(|command| {
        let store = Arc::clone(&world.store);
        async move { store.create_organization(command).await.unwrap() }
    }))
    .await;
    assert_eq!(created.iter().filter(|created| **created).count(), 1);
    for (id, created) in ids.into_iter().zip(created) {
        assert_eq!(world.store.organization(id).await.unwrap().is_some(), created);
        assert_eq!(world.audited_in(id, AuditAction::OrganizationCreated).await, usize::from(created));
    }
}

/// An organization is found as it was created, by id and by name without regard to ASCII case; others are not found.
pub async fn organization_is_found_by_id_and_name(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let created = Organization {
        id: world.organization,
        name: world.name.clone(),
        state: OrganizationState::Active,
        created_at: world.now(),
    };
    assert_eq!(world.store.organization(created.id).await.unwrap().as_ref(), Some(&created));
    for spelling in [created.name.as_str().to_ascii_uppercase(), created.name.as_str().to_ascii_lowercase()] {
        assert_eq!(world.store.find_organization(&name(&spelling)).await.unwrap().as_ref(), Some(&created));
    }
    let nonexistent = name(&format!("{}%", &created.name.as_str()[..20]));
    assert_eq!(world.store.find_organization(&nonexistent).await.unwrap(), None);
    let nonexistent = OrganizationId::from_uuid(world.ids.random());
    assert_eq!(world.store.organization(nonexistent).await.unwrap(), None);
    assert_eq!(world.store.organization_keys(nonexistent).await.unwrap(), None);
}

/// Names may contain any printable characters; only ASCII letters are compared without case.
pub async fn names_keep_their_spelling(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let lower = name(&format!("Größe “Ωmega” % _ \\ ' {}", world.ids.random()));
    let upper = name(&lower.as_str().replace('ö', "Ö"));
    for spelling in [&lower, &upper] {
        let command = another(&world, spelling.as_str());
        assert!(world.store.create_organization(command).await.unwrap());
        assert_eq!(world.store.find_organization(spelling).await.unwrap().unwrap().name, *spelling);
    }
}

/// All organizations are listed by name.
pub async fn organizations_are_listed_by_name(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let prefix = world.ids.random().to_string();
    let mut names: Vec<_> = ["b", "c", "a"].map(|suffix| format!("{prefix}-{suffix}")).into();
    for text in &names {
        assert!(world.store.create_organization(another(&world, text)).await.unwrap());
    }
    names.sort();
    let listed = world.store.list_organizations().await.unwrap();
    let ours = listed.iter().map(|organization| organization.name.as_str()).filter(|name| name.starts_with(&prefix));
    assert_eq!(ours.collect::<Vec<_>>(), names);
}

/// An organization is disabled and enabled again; an unknown one is not affected.
pub async fn organization_state_is_set(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for state in [OrganizationState::Disabled, OrganizationState::Active] {
        world.set_state(state).await;
        assert_eq!(world.store.organization(world.organization).await.unwrap().unwrap().state, state);
    }
    assert_eq!(world.audited(AuditAction::OrganizationDisabled).await, 1);
    assert_eq!(world.audited(AuditAction::OrganizationEnabled).await, 1);

    let nonexistent = OrganizationId::from_uuid(world.ids.random());
    let audit = world.audit_in(nonexistent, AuditAction::OrganizationDisabled);
    let command = SetOrganizationState { organization: nonexistent, state: OrganizationState::Disabled, audit };
    assert!(!world.store.set_organization_state(command).await.unwrap());
    assert_eq!(world.audited_in(nonexistent, AuditAction::OrganizationDisabled).await, 0);
}

/// Of concurrent deletions of an organization exactly one succeeds.
pub async fn parallel_deletions_delete_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let deleted = race((0..8).map(|_| {
        let (store, command) = (Arc::clone(&world.store), deletion(&world));
        async move { store.delete_organization(command).await.unwrap() }
    }))
    .await;
    assert_eq!(deleted.iter().filter(|deleted| **deleted).count(), 1);
    assert_eq!(world.audited(AuditAction::OrganizationDeleted).await, 1);
}

pub(super) fn another(world: &World<'_>, text: &str) -> CreateOrganization {
    let id = OrganizationId::from_uuid(world.ids.ordered(world.now()));
    world.create_organization(id, KeyId::from_uuid(world.ids.random()), &name(text))
}

pub(super) fn deletion(world: &World<'_>) -> DeleteOrganization {
    let audit = world.audit(AuditAction::OrganizationDeleted);
    DeleteOrganization { organization: world.organization, audit }
}
