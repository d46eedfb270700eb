//! Cases of integrations.

use super::ContractStore;
use super::activators::set_state;
use super::tools::Settled;
use super::world::World;
use futures_util::future::join_all;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::id::{IntegrationId, OrganizationId};
use vault_core::identity::TrustId;
use vault_core::integration::{
    CountActions, CountHours, CountedPeriod, CreateIntegration, ExpiringIntegrations, FindIntegration, Integration,
    IntegrationChange, IntegrationName, IntegrationNames, IntegrationRef, IntegrationState, ListIntegrations,
    NamespacePatterns, Overlap, StoredIntegration,
};
use vault_core::organization::OrganizationState;
use vault_core::port::{IdGenerator, NamePosition};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::receiver::ExpiringObject;
use vault_core::role::Role;
use vault_core::time::Timestamp;

const OPERATOR: Principal = Principal::Operator;

fn by_name(organization: OrganizationId, name: &str) -> FindIntegration {
    FindIntegration { organization, integration: IntegrationRef::Name(name.to_owned()) }
}

/// An integration is found by id and by name with all its fields; not under another organization.
pub async fn integration_is_found_as_created(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let many: Vec<_> = (0..64).map(|n| format!("Namespace.{n}/{}*", "x/".repeat(n % 20))).collect();
    for (patterns, expires_at) in [(many, None), (vec!["one".to_owned()], Some(world.now()))] {
        let name = format!("Nightly “Ωmega” % _ \\ ' {}", patterns.len());
        let patterns = NamespacePatterns::parse(&patterns, "").unwrap();
        let created = Integration { patterns, expires_at, ..world.new_integration(&name) };
        let operation = world.create_integration(created.clone());
        let id = operation.id;
        world.operate(&OPERATOR, operation).await.unwrap();
        let found = world.read_integration(id).await.unwrap();
        let organization = world.organization;
        let expected = StoredIntegration { id, organization, version: 1, integration: created, last_used_at: None };
        assert_eq!(found, expected);
        for name in [name.clone(), name.to_ascii_uppercase()] {
            assert_eq!(world.operate(&OPERATOR, by_name(organization, &name)).await.unwrap(), found);
            let elsewhere = world.operate(&OPERATOR, by_name(other.organization, &name)).await;
            assert_eq!(elsewhere.decided(), Err(Refusal::NotFound));
        }
        assert_eq!(other.read_integration(id).await, None);
        let names = IntegrationNames { organization, integrations: vec![id, IntegrationId::from_bytes([9; 16])] };
        let names = world.operate(&OPERATOR, names).await.unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [(id, IntegrationName::parse(&name, "").unwrap())]);
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
        let created = place.operate(&OPERATOR, place.create_integration(place.new_integration(name))).await;
        assert_eq!(created.decided(), outcome, "{name}");
    }
    assert_eq!(world.audited(AuditAction::IntegrationCreated).await, 2);
    // The name of a deleted integration is free.
    let first = world.operate(&OPERATOR, by_name(world.organization, "Größe nightly")).await.unwrap();
    world.operate(&OPERATOR, world.delete_of_integration(first.id)).await.unwrap();
    world.operate(&OPERATOR, world.create_integration(world.new_integration("Größe nightly"))).await.unwrap();
}

/// Of concurrent creations of an integration with one name exactly one succeeds.
pub async fn parallel_integrations_of_one_name_create_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let creations =
        (0..8).map(|_| world.operate(&OPERATOR, world.create_integration(world.new_integration("nightly"))));
    let outcomes: Vec<_> = join_all(creations).await.into_iter().map(Settled::decided).collect();
    let created = outcomes.iter().filter(|outcome| **outcome == Ok(())).count();
    let taken = outcomes.iter().filter(|outcome| **outcome == Err(Refusal::NameTaken)).count();
    assert_eq!((created, taken), (1, 7));
    assert_eq!(world.audited(AuditAction::IntegrationCreated).await, 1);
}

/// Without an organization no integration is created.
pub async fn integration_requires_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let organization = OrganizationId::from_uuid(world.ids.random());
    let create = CreateIntegration { organization, ..world.create_integration(world.new_integration("nightly")) };
    assert_eq!(world.operate(&OPERATOR, create).await.decided(), Err(Refusal::NoOrganization));
    assert_eq!(world.audited_in(organization, AuditAction::IntegrationCreated).await, 0);
}

/// The limit on integrations per organization is enforced.
pub async fn number_of_integrations_is_limited(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    other.integration().await;
    let reached = Err(Refusal::LimitReached { what: "integrations", limit: 2 });
    for (name, outcome) in [("a", Ok(())), ("b", Ok(())), ("c", reached)] {
        let limited = CreateIntegration { limit: 2, ..world.create_integration(world.new_integration(name)) };
        assert_eq!(world.operate(&OPERATOR, limited).await.decided(), outcome, "{name}");
    }
    assert_eq!(world.audited(AuditAction::IntegrationCreated).await, 2);
}

/// Integrations are listed by organization, then by name without regard to case.
pub async fn integrations_are_listed_by_organization_and_name(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for (place, name) in [(&world, "b"), (&world, "C"), (&other, "a"), (&world, "a")] {
        place.operate(&OPERATOR, place.create_integration(place.new_integration(name))).await.unwrap();
    }
    let listed = world.integrations(&OPERATOR, Scope::One(world.organization)).await;
    let names: Vec<_> = listed.iter().map(|row| row.integration.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "C"]);
    // The list has pages, and other organizations may have integrations.
    let position = |row: &StoredIntegration| NamePosition {
        organization: row.organization,
        name: row.integration.name.uniqueness_key(),
    };
    for (scope, expected) in [(Scope::One(world.organization), 3), (Scope::All, 4)] {
        let (mut rows, mut after): (Vec<StoredIntegration>, _) = (Vec::new(), None);
        loop {
            let page = world.operate(&OPERATOR, ListIntegrations { scope, after, limit: 2 }).await.unwrap();
            let full = page.len() == 2;
            after = page.last().map(position);
            rows.extend(page);
            if !full {
                break;
            }
        }
        let ours = [world.organization, other.organization];
        rows.retain(|row| ours.contains(&row.organization));
        assert_eq!(rows.len(), expected);
        assert!(rows.is_sorted_by_key(position));
    }
}

/// A change of an integration of another organization, or of one that does not exist, changes nothing.
pub async fn stray_change_of_an_integration_changes_nothing(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let found = world.integration().await;
    let id = found.stored.id;
    let entries = world.audit_length().await;
    let disable = || set_state(IntegrationState::Disabled);
    assert_eq!(
        other.operate(&OPERATOR, other.change_integration(id, disable())).await.decided(),
        Err(Refusal::NotFound)
    );
    assert_eq!(other.operate(&OPERATOR, other.delete_of_integration(id)).await.decided(), Err(Refusal::NotFound));
    let trust = IntegrationChange::Distrust(TrustId::from_uuid(world.ids.random()));
    assert_eq!(world.operate(&OPERATOR, world.change_integration(id, trust)).await.decided(), Err(Refusal::NotFound));
    assert_eq!(world.read_integration(id).await, Some(found.stored.clone()));
    assert_eq!(world.audit_length().await, entries);
    world.delete_integration(&found).await;
    assert_eq!(world.read_integration(id).await, None);
    assert_eq!(world.operate(&OPERATOR, world.delete_of_integration(id)).await.decided(), Err(Refusal::NotFound));
    assert_eq!(
        world.operate(&OPERATOR, world.change_integration(id, disable())).await.decided(),
        Err(Refusal::NotFound)
    );
    assert_eq!(world.audited(AuditAction::IntegrationDeleted).await, 1);
}

/// Concurrent changes apply one after the other, and none is lost.
pub async fn parallel_rotations_apply_one_after_the_other(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let id = world.integration().await.stored.id;
    let rotations: Vec<_> = (0..8).map(|_| world.change_integration(id, world.rotation(Overlap::DEFAULT))).collect();
    let rotated = join_all(rotations.iter().map(|one| world.operate(&OPERATOR, one.clone()))).await;
    let mut versions: Vec<_> = rotated.into_iter().map(|outcome| outcome.unwrap().version).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..=9).collect::<Vec<_>>());
    let last = world.read_integration(id).await.unwrap().integration;
    let tokens = rotations.iter().map(|rotation| match rotation.change {
        IntegrationChange::Rotate { token, .. } => token,
        _ => unreachable!(),
    });
    for token in tokens {
        let is_kept = token == last.token || last.previous.is_some_and(|previous| previous.digest == token);
        assert_eq!(world.find_by_token(token).await.is_some(), is_kept);
    }
    assert_eq!(world.audited(AuditAction::IntegrationRotated).await, 8);
}

/// Active integrations of an organization are found by their expiry.
pub async fn expiring_integrations_are_found(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (now, organization) = (world.now(), world.organization);
    let at = |seconds| now.plus_seconds(seconds);
    for (place, name, expires_at) in [
        (&world, "late", Some(at(9))),
        (&world, "soon", Some(at(5))),
        (&world, "never", None),
        (&world, "disabled", Some(at(6))),
        (&world, "early", Some(at(4))),
        (&other, "soon", Some(at(5))),
    ] {
        let integration = Integration { expires_at, ..place.new_integration(name) };
        place.operate(&OPERATOR, place.create_integration(integration)).await.unwrap();
    }
    let disabled = world.operate(&OPERATOR, by_name(organization, "disabled")).await.unwrap().id;
    world.operate(&OPERATOR, world.change_integration(disabled, set_state(IntegrationState::Disabled))).await.unwrap();
    let expiring = async |after, until, limit| {
        let found = world.operate(&OPERATOR, ExpiringIntegrations { organization, after, until, limit }).await;
        let name = |object| match object {
            ExpiringObject::Integration(_, name) => name,
            other => panic!("{other:?}"),
        };
        found.unwrap().into_iter().map(|one| name(one.object)).collect::<Vec<_>>()
    };
    assert_eq!(expiring(at(4), at(9), 9).await, ["soon", "late"]);
    assert_eq!(expiring(at(0), at(8), 9).await, ["early", "soon"]);
    assert_eq!(expiring(at(0), at(99), 1).await, ["early"]);
}

/// Disabling an organization does not change its integrations; deleting it deletes them.
pub async fn integration_is_deleted_with_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let stored = world.integration().await.stored;
    world.set_state(OrganizationState::Disabled).await;
    assert_eq!(world.read_integration(stored.id).await.as_ref(), Some(&stored));
    world.set_state(OrganizationState::Active).await;
    assert_eq!(world.read_integration(stored.id).await.as_ref(), Some(&stored));
    world.set_frozen("contract", true).await;

    world.delete_organization().await;
    assert_eq!(world.read_integration(stored.id).await, None);
    assert_eq!(world.integrations(&OPERATOR, Scope::One(world.organization)).await, []);
    assert_eq!(suite.rows(world.organization).await, Vec::<String>::new());
}

/// Runs each operation on integrations and namespaces, and returns the denials.
async fn denials(world: &World<'_>, principal: &Principal, id: IntegrationId) -> Vec<Option<Denial>> {
    let (organization, scope) = (world.organization, Scope::One(world.organization));
    let period = CountedPeriod { since: Timestamp::from_millis(0), integration: None };
    macro_rules! denial {
        ($($operation:expr,)*) => { vec![$(world.operate(principal, $operation).await.settled().err(),)*] };
    }
    denial![
        world.create_integration(world.new_integration("later")),
        world.find_integration(id),
        ListIntegrations { scope, after: None, limit: 10 },
        CountActions(organization, period),
        CountHours(organization, period),
        world.change_integration(id, world.rotation(Overlap::DEFAULT)),
        world.delete_of_integration(id),
        world.freeze("contract", false),
        world.list_namespaces(),
    ]
}

/// A user of an embedding service, and an admin's session, administer only integrations and namespaces of their own
/// organization, while it is active.
pub async fn users_administer_only_their_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let strange = other.integration().await.stored;
    let [session, _] = world.two_sessions(Role::Admin).await;
    let (user, admin) = (world.embedder(), Principal::Session(session.clone()));
    for (principal, name) in [(&user, "a"), (&admin, "b")] {
        let create = world.create_integration(world.new_integration(name));
        let id = create.id;
        world.operate(principal, create).await.unwrap();
        assert_eq!(world.operate(principal, world.find_integration(id)).await.unwrap().version, 1);
        world.operate(principal, world.change_integration(id, world.rotation(Overlap::DEFAULT))).await.unwrap();
        let own = world.integrations(principal, Scope::One(world.organization)).await;
        assert_eq!(own.iter().map(|one| (one.id, one.version)).collect::<Vec<_>>(), [(id, 2)]);
        world.operate(principal, world.delete_of_integration(id)).await.unwrap();

        let none = Err(Refusal::NoOrganization);
        assert_eq!(
            world.operate(principal, other.create_integration(other.new_integration("mine"))).await.decided(),
            none
        );
        assert_eq!(world.operate(principal, other.freeze("contract", true)).await.decided().err(), none.err());
        let found = world.operate(principal, other.find_integration(strange.id)).await.decided();
        assert_eq!(found, Err(Refusal::NotFound));
        let changed =
            world.operate(principal, other.change_integration(strange.id, set_state(IntegrationState::Disabled))).await;
        assert_eq!(changed.decided(), Err(Refusal::NotFound));
        assert_eq!(
            world.operate(principal, other.delete_of_integration(strange.id)).await.decided(),
            Err(Refusal::NotFound)
        );
        for scope in [Scope::One(other.organization), Scope::All] {
            let listed = world.operate(principal, ListIntegrations { scope, after: None, limit: 9 }).await;
            assert_eq!(listed.settled(), Err(Denial::InsufficientRole));
        }
    }
    assert_eq!(other.read_integration(strange.id).await, Some(strange));

    let kept = world.integration().await.stored;
    world.log_out(&session).await;
    let entries = world.audit_length().await;
    assert_eq!(denials(&world, &admin, kept.id).await, [Some(Denial::SessionEnded); 9]);
    assert_eq!(world.audit_length().await, entries);
    world.set_state(OrganizationState::Disabled).await;
    let entries = world.audit_length().await;
    assert_eq!(denials(&world, &user, kept.id).await, [Some(Denial::OrganizationDisabled); 9]);
    assert_eq!(world.audit_length().await, entries);
    assert_eq!(world.read_integration(kept.id).await, Some(kept));
}
