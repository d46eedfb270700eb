//! Cases of the operations on organizations.

use super::ContractStore;
use super::tools::{Settled as _, name};
use super::world::World;
use futures_util::future::join_all;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::id::OrganizationId;
use vault_core::organization::{
    CreateOrganization, DeleteOrganization, FindOrganization, ListOrganizations, Organization, OrganizationName,
    OrganizationState, ReadOrganization, SetOrganizationState,
};
use vault_core::port::IdGenerator;
use vault_core::principal::Principal;

/// If several requests create an organization with the same name, which ignores ASCII case, exactly one succeeds.
pub async fn parallel_creations_of_one_name_create_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let taken = format!("Parallel {}", world.ids.random());
    let spelled = |number| if number % 2 == 0 { taken.clone() } else { taken.to_ascii_uppercase() };
    let commands: Vec<_> = (0..16).map(|number| another(&world, &spelled(number))).collect();
    let ids: Vec<_> = commands.iter().map(|command| command.id).collect();
    let created = join_all(commands.into_iter().map(|command| world.operate(&Principal::Operator, command))).await;
    let created: Vec<_> = created.into_iter().map(|created| created.decided() != Err(Refusal::NameTaken)).collect();
    assert_eq!(created.iter().filter(|created| **created).count(), 1);
    for (id, created) in ids.into_iter().zip(created) {
        let found = world.operate(&Principal::Operator, ReadOrganization(id)).await.unwrap();
        assert_eq!(found.is_some(), created);
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
        keys: world.keys().await,
    };
    assert_eq!(world.read_organization().await.as_ref(), Some(&created));
    for spelling in [created.name.as_str().to_ascii_uppercase(), created.name.as_str().to_ascii_lowercase()] {
        assert_eq!(find(&world, &name(&spelling)).await.as_ref(), Some(&created));
    }
    let nonexistent = name(&format!("{}%", &created.name.as_str()[..20]));
    assert_eq!(find(&world, &nonexistent).await, None);
    let nonexistent = OrganizationId::from_uuid(world.ids.random());
    assert_eq!(world.operate(&Principal::Operator, ReadOrganization(nonexistent)).await.unwrap(), None);
    assert_eq!(world.operate(&world.embedder(), ReadOrganization(nonexistent)).await.unwrap(), None);
}

/// Names may contain any printable characters; only ASCII letters are compared without case.
pub async fn names_keep_their_spelling(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let lower = name(&format!("Größe “Ωmega” % _ \\ ' {}", world.ids.random()));
    let upper = name(&lower.as_str().replace('ö', "Ö"));
    for spelling in [&lower, &upper] {
        world.operate(&Principal::Operator, another(&world, spelling.as_str())).await.unwrap();
        assert_eq!(find(&world, spelling).await.unwrap().name, *spelling);
    }
}

/// All organizations are listed by name.
pub async fn organizations_are_listed_by_name(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let prefix = world.ids.random().to_string();
    let mut names: Vec<_> = ["b", "c", "a"].map(|suffix| format!("{prefix}-{suffix}")).into();
    for text in &names {
        world.operate(&Principal::Operator, another(&world, text)).await.unwrap();
    }
    names.sort();
    let listed = world.operate(&Principal::Operator, ListOrganizations).await.unwrap();
    let ours = listed.iter().map(|organization| organization.name.as_str()).filter(|name| name.starts_with(&prefix));
    assert_eq!(ours.collect::<Vec<_>>(), names);
}

/// An organization is disabled and enabled again; an unknown one is not affected.
pub async fn organization_state_is_set(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for state in [OrganizationState::Disabled, OrganizationState::Active] {
        world.set_state(state).await;
        assert_eq!(world.read_organization().await.unwrap().state, state);
    }
    assert_eq!(world.audited(AuditAction::OrganizationDisabled).await, 1);
    assert_eq!(world.audited(AuditAction::OrganizationEnabled).await, 1);

    let organization = OrganizationId::from_uuid(world.ids.random());
    let disable = SetOrganizationState { organization, state: OrganizationState::Disabled };
    let refused = world.operate(&Principal::Operator, disable).await.decided();
    assert_eq!(refused.unwrap_err(), Refusal::NoOrganization);
    assert_eq!(world.audited_in(organization, AuditAction::OrganizationDisabled).await, 0);
}

/// Of concurrent deletions of an organization exactly one succeeds.
pub async fn parallel_deletions_delete_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let delete = || world.operate(&Principal::Operator, DeleteOrganization(world.organization));
    let deleted = join_all((0..8).map(|_| delete())).await;
    let deleted = deleted.into_iter().filter(|deleted| deleted.is_ok());
    assert_eq!(deleted.count(), 1);
    assert_eq!(delete().await.decided(), Err(Refusal::NoOrganization));
    assert_eq!(world.audited(AuditAction::OrganizationDeleted).await, 1);
}

async fn find(world: &World<'_>, name: &OrganizationName) -> Option<Organization> {
    world.operate(&Principal::Operator, FindOrganization(name.clone())).await.unwrap()
}

pub(super) fn another(world: &World<'_>, text: &str) -> CreateOrganization {
    let id = OrganizationId::from_uuid(world.ids.ordered(world.now()));
    CreateOrganization { id, name: name(text) }
}
