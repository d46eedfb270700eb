//! Cases of [`IntegrationRepository`](vault_core::port::IntegrationRepository).

use super::ContractStore;
use super::activators::replacement;
use super::tools::{Settled as _, race, with};
use super::world::World;
use std::sync::Arc;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::id::OrganizationId;
use vault_core::integration::{Integration, IntegrationName, IntegrationState, NamespacePatterns, StoredIntegration};
use vault_core::namespace::ListFrozen;
use vault_core::organization::OrganizationState;
use vault_core::port::{CountedPeriod, Find, IdGenerator, IntegrationChange, IntegrationKey, List, NamePosition};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::time::Timestamp;

const OPERATOR: Principal = Principal::Operator;

/// An integration is found by id and by name with all its fields; not under another organization.
pub async fn integration_is_found_as_created(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let many: Vec<_> = (0..64).map(|n| format!("Namespace.{n}/{}*", "x/".repeat(n % 20))).collect();
    let mut created = world.new_integration("Nightly “Ωmega” % _ \\ '");
    for (patterns, expires_at) in [(many, None), (vec!["one".to_owned()], created.expires_at)] {
        created = Integration {
            patterns: NamespacePatterns::parse(&patterns, "").unwrap(),
            expires_at,
            name: IntegrationName::parse(&format!("{} {}", created.name, patterns.len()), "").unwrap(),
            ..Integration { id: world.new_integration("x").id, token: world.token(), ..created }
        };
        let command = world.create_integration(&OPERATOR, &created);
        let digest = command.payload.digest;
        world.store.create_integration(command).await.unwrap();

        let found = world.read_integration(&created).await.unwrap();
        assert_eq!((&found.integration, found.digest), (&created, digest));
        let upper = IntegrationName::parse(&created.name.as_str().to_ascii_uppercase(), "").unwrap();
        for key in [IntegrationKey::Name(created.name.clone()), IntegrationKey::Name(upper)] {
            assert_eq!(world.find_integration(&OPERATOR, key.clone()).await.as_ref(), Some(&found));
            assert_eq!(other.find_integration(&OPERATOR, key).await, None);
        }
        assert_eq!(other.read_integration(&created).await, None);
    }
    assert_eq!(world.audited(AuditAction::IntegrationCreated).await, 2);
}

/// Within an organization a name is unique without regard to ASCII case; other organizations may use it.
pub async fn integration_name_is_scoped_to_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for (place, name, outcome) in [
        (&world, "Größe nightly", Ok(())),
        (&world, "Größe NIGHTLY", Err(Refusal::NameTaken)),
        (&world, "GrÖße nightly", Ok(())),
        (&other, "Größe nightly", Ok(())),
    ] {
        let command = place.create_integration(&OPERATOR, &place.new_integration(name));
        assert_eq!(place.store.create_integration(command).await.decided(), outcome, "{name}");
    }
    assert_eq!(world.audited(AuditAction::IntegrationCreated).await, 2);
}

/// Of concurrent creations of an integration with one name exactly one succeeds.
pub async fn parallel_integrations_of_one_name_create_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let outcomes = race((0..8).map(|_| {
        let command = world.create_integration(&OPERATOR, &world.new_integration("nightly"));
        let store = Arc::clone(&world.store);
        async move { store.create_integration(command).await.decided() }
    }))
    .await;
    let created = outcomes.iter().filter(|outcome| **outcome == Ok(())).count();
    let taken = outcomes.iter().filter(|outcome| **outcome == Err(Refusal::NameTaken)).count();
    assert_eq!((created, taken), (1, 7));
    assert_eq!(world.audited(AuditAction::IntegrationCreated).await, 1);
}

/// Without an organization no integration is created.
pub async fn integration_requires_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let nonexistent = OrganizationId::from_uuid(world.ids.random());
    let integration = Integration { organization: nonexistent, ..world.new_integration("nightly") };
    let outcome = world.store.create_integration(world.create_integration(&OPERATOR, &integration)).await.decided();
    assert_eq!(outcome, Err(Refusal::NoOrganization));
    assert_eq!(world.audited_in(nonexistent, AuditAction::IntegrationCreated).await, 0);
}

/// The limit on integrations per organization is enforced.
pub async fn number_of_integrations_is_limited(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    other.integration().await;
    let limited = |name: &str| {
        with(world.create_integration(&OPERATOR, &world.new_integration(name)), |payload| payload.limit = 2)
    };
    for (name, outcome) in [("a", Ok(())), ("b", Ok(())), ("c", Err(limited("c").payload.limit_reached()))] {
        assert_eq!(world.store.create_integration(limited(name)).await.decided(), outcome, "{name}");
    }
    assert_eq!(world.audited(AuditAction::IntegrationCreated).await, 2);
}

/// Integrations are listed by organization, then by name without regard to case.
pub async fn integrations_are_listed_by_organization_and_name(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for (place, name) in [(&world, "b"), (&world, "C"), (&other, "a"), (&world, "a")] {
        let command = place.create_integration(&OPERATOR, &place.new_integration(name));
        place.store.create_integration(command).await.unwrap();
    }
    let listed = world.integrations(&OPERATOR, Scope::One(world.organization)).await;
    assert_eq!(names(&listed), ["a", "b", "C"]);
    // The list has pages, and other organizations may have integrations.
    let position = |row: &StoredIntegration| NamePosition {
        organization: row.integration.organization,
        name: row.integration.name.uniqueness_key(),
    };
    for (scope, expected) in [(Scope::One(world.organization), 3), (Scope::All, 4)] {
        let (mut rows, mut after): (Vec<StoredIntegration>, _) = (Vec::new(), None);
        loop {
            let query = List { after, limit: 2, ..world.list_integrations(&OPERATOR, scope) };
            let page = world.store.list_integrations(query).await.unwrap();
            let full = page.len() == 2;
            after = page.last().map(position);
            rows.extend(page);
            if !full {
                break;
            }
        }
        let ours = [world.organization, other.organization];
        rows.retain(|row| ours.contains(&row.integration.organization));
        assert_eq!(rows.len(), expected);
        assert!(rows.is_sorted_by_key(position));
    }
}

/// A change based on an old version, of another organization or of an unknown integration changes nothing.
pub async fn stale_or_stray_change_of_an_integration_changes_nothing(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let before = world.integration().await;
    let disabled = Integration { state: IntegrationState::Disabled, ..before.integration.clone() };
    let now = world.replace_integration(&before, disabled).await;
    let entries = world.audit_length().await;
    for change in [replacement(&before.integration), IntegrationChange::Delete] {
        let stale = world.change_integration(&OPERATOR, &before, change.clone());
        assert_eq!(world.store.change_integration(stale).await.decided(), Err(Refusal::Contended));
        let current = world.change_integration(&OPERATOR, &now, change);
        let elsewhere = with(current, |payload| payload.organization = other.organization);
        assert_eq!(world.store.change_integration(elsewhere).await.decided(), Err(Refusal::NotFound));
    }
    assert_eq!(world.read_integration(&before.integration).await, Some(now.clone()));
    assert_eq!(world.audit_length().await, entries);
    world.delete_integration(&now).await;
    assert_eq!(world.read_integration(&before.integration).await, None);
    let again = world.change_integration(&OPERATOR, &now, IntegrationChange::Delete);
    assert_eq!(world.store.change_integration(again).await.decided(), Err(Refusal::NotFound));
    assert_eq!(world.audited(AuditAction::IntegrationDeleted).await, 1);
}

/// Of concurrent changes based on one version exactly one succeeds.
pub async fn parallel_rotations_of_one_version_apply_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let stored = world.integration().await;
    let rotations: Vec<_> = (0..8).map(|_| world.rotated(&stored)).collect();
    let outcomes = race(rotations.iter().map(|rotated| {
        let command = world.change_integration(&OPERATOR, &stored, replacement(rotated));
        let store = Arc::clone(&world.store);
        async move { store.change_integration(command).await.decided() }
    }))
    .await;
    let winners: Vec<_> = rotations
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| **outcome == Ok(()))
        .map(|(rotated, _)| rotated)
        .collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    assert_eq!(&world.read_integration(&stored.integration).await.unwrap().integration, winners[0]);
    assert_eq!(world.audited(AuditAction::IntegrationRotated).await, 1);
}

/// Disabling an organization does not change its integrations; deleting it deletes them.
pub async fn integration_is_deleted_with_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let stored = world.integration().await;
    world.set_state(OrganizationState::Disabled).await;
    assert_eq!(world.read_integration(&stored.integration).await.as_ref(), Some(&stored));
    world.set_state(OrganizationState::Active).await;
    assert_eq!(world.read_integration(&stored.integration).await.as_ref(), Some(&stored));
    world.set_frozen("contract", true).await;

    world.delete_organization().await;
    assert_eq!(world.read_integration(&stored.integration).await, None);
    assert_eq!(world.integrations(&OPERATOR, Scope::One(world.organization)).await, []);
    assert_eq!(suite.rows(world.organization).await, Vec::<String>::new());
}

/// A user of an embedding service administers only integrations and namespaces of the user's own organization, while it
/// is active.
pub async fn embedder_administers_only_its_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let user = world.embedder();
    let created = world.new_integration("nightly");
    let outcome = world.store.create_integration(world.create_integration(&user, &created)).await.decided();
    assert_eq!(outcome, Ok(()));
    let stored = world.find_integration(&user, IntegrationKey::Id(created.id)).await.unwrap();
    let freezing = world.operate(&user, world.freeze("contract", true)).await.unwrap();
    assert_eq!((freezing.changed, freezing.integrations), (true, 1));

    let strange = other.integration().await;
    assert_eq!(other.find_integration(&user, IntegrationKey::Id(strange.integration.id)).await, None);
    let outcome = other.store.create_integration(other.create_integration(&user, &other.new_integration("mine")));
    assert_eq!(outcome.await.decided(), Err(Refusal::NoOrganization));
    let deletion = other.change_integration(&user, &strange, IntegrationChange::Delete);
    assert_eq!(other.store.change_integration(deletion).await.decided(), Err(Refusal::NotFound));
    let outcome = other.operate(&user, other.freeze("contract", true)).await;
    assert_eq!(outcome.decided(), Err(Refusal::NoOrganization));
    assert_eq!(other.read_integration(&strange.integration).await, Some(strange));

    world.set_state(OrganizationState::Disabled).await;
    let entries = world.audit_length().await;
    let store = &world.store;
    let (own, of, now) = (Scope::One(world.organization), world.organization, world.now());
    macro_rules! denied {
        ($method:ident($command:expr)) => {
            let answer = store.$method($command).await.settled().err();
            assert_eq!(answer, Some(Denial::OrganizationDisabled), stringify!($method));
        };
    }
    denied!(create_integration(world.create_integration(&user, &world.new_integration("later"))));
    let key = IntegrationKey::Id(created.id);
    denied!(find_integration(Find { principal: user.clone(), of, key, now }));
    denied!(list_integrations(world.list_integrations(&user, own)));
    let key = CountedPeriod { since: Timestamp::from_millis(0), integration: None };
    let since = Find { principal: user.clone(), of, key, now };
    denied!(count_integration_actions(since.clone()));
    denied!(count_hourly_actions(since));
    denied!(change_integration(world.change_integration(&user, &stored, IntegrationChange::Delete)));
    let disabled = Some(Denial::OrganizationDisabled);
    assert_eq!(world.operate(&user, world.freeze("contract", false)).await.settled().err(), disabled);
    let frozen = ListFrozen { scope: own, after: None, limit: 10 };
    assert_eq!(world.operate(&user, frozen).await.settled().err(), disabled);
    assert_eq!(world.operate(&user, world.list_namespaces()).await.settled().err(), disabled);
    assert_eq!(world.audit_length().await, entries);
    assert_eq!(world.read_integration(&created).await, Some(stored));
}

fn names(listed: &[StoredIntegration]) -> Vec<&str> {
    listed.iter().map(|row| row.integration.name.as_str()).collect()
}
