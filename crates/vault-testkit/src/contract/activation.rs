//! Cases of activations.

use super::ContractStore;
use super::activators::{ACTIVATION_SECONDS, set_state};
use super::saving::{Saving, data};
use super::tools::{Settled as _, namespace, race, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use crate::crypto::PlainSealer;
use std::sync::Arc;
use tokio::task::JoinSet;
use vault_core::Refusal;
use vault_core::activation::{
    AbortActivation, Activation, FetchCredentials, FetchedCredential, ForIntegration, ListActivations, VendMode,
};
use vault_core::audit::AuditAction;
use vault_core::id::ActivationId;
use vault_core::integration::{FoundIntegration, IntegrationPrincipal, IntegrationRefusal, IntegrationState, Overlap};
use vault_core::organization::OrganizationState;
use vault_core::port::{CredentialContext, IdGenerator, Opener as _, Sealer as _};
use vault_core::principal::Denial;

/// A token finds its integration, and whether its organization is active; after deletion, and from another
/// organization, it finds nothing.
pub async fn token_finds_its_integration(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let found = world.integration().await;
    let token = found.stored.integration.token;
    assert!(found.organization_active);
    assert_eq!(world.find_by_token(world.token()).await, None);
    world.set_state(OrganizationState::Disabled).await;
    assert_eq!(world.find_by_token(token).await.filter(|found| found.organization_active), None);
    world.set_state(OrganizationState::Active).await;
    assert_eq!(world.find_by_token(token).await.as_ref(), Some(&found));
    world.delete_integration(&found).await;
    assert_eq!(world.find_by_token(token).await, None);

    let found = world.integration().await;
    world.delete_organization().await;
    assert_eq!(world.find_by_token(found.stored.integration.token).await, None);
}

/// After a rotation both tokens find the integration; after the next rotation only the newest two do.
pub async fn rotated_integration_is_found_by_both_tokens(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let first = world.integration().await;
    let by = async |found: &FoundIntegration| world.find_by_token(found.stored.integration.token).await;
    let second = world.changed_integration(&first, world.rotation(Overlap::DEFAULT)).await;
    assert_eq!(second.stored.version, first.stored.version + 1);
    assert_eq!((by(&first).await.as_ref(), by(&second).await.as_ref()), (Some(&second), Some(&second)));
    let third = world.changed_integration(&second, world.rotation(Overlap::DEFAULT)).await;
    assert_eq!((by(&first).await, by(&second).await.as_ref()), (None, Some(&third)));
    // A token that was replaced without overlap is found too, to distinguish it from a guess.
    let fourth = world.changed_integration(&third, world.rotation(Overlap::parse(Some(0), "").unwrap())).await;
    assert_eq!(by(&second).await, None);
    let found = by(&third).await.unwrap();
    let evaluated = found.principal(third.stored.integration.token, world.now());
    assert_eq!((&found, evaluated), (&fourth, Err(IntegrationRefusal::Replaced)));
    assert_eq!(by(&fourth).await, Some(fourth));
}

/// An activation returns all credentials of exactly this namespace and organization as they were saved, oldest first,
/// without deleted ones.
pub async fn credentials_are_fetched_as_saved(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.activator(&world.integration().await);
    let mut saved = Vec::new();
    for _ in 0..5 {
        saved.push(world.saved_in("below/a").await);
        world.clock.advance_seconds(1);
        world.saved_in("below/a/b").await;
        world.saved_in("below/A").await;
        other.saved_in("below/a").await;
    }
    let gone = saved.remove(2);
    world.delete_credential(gone.id).await;
    let mut expected = Vec::new();
    let owner = world.read_organization().await.unwrap();
    let sealer = PlainSealer::new(world.ids.clone());
    for Saving { id, new, namespace, .. } in saved {
        let row = world.show(&world.embedder(), id).await.unwrap();
        let context = CredentialContext { organization: owner.id, credential: id, version: 1, id: new.id };
        let json = data(new.kind, new.id).to_canonical_json();
        let data = sealer.seal(&owner.keys, context, &namespace, &json).unwrap();
        expected.push(FetchedCredential { row, version: 1, data });
    }
    let command = world.take(&principal, "below/a");
    let id = command.payload.activation.as_ref().unwrap().id;
    assert_eq!(world.taken(command).await, expected);
    let activation = Activation {
        id,
        organization: world.organization,
        integration: principal.integration,
        namespace: namespace("below/a"),
        vend: VendMode::PreferShort,
        credentials: 4,
        started_at: world.now(),
        expires_at: world.now().plus_seconds(ACTIVATION_SECONDS),
    };
    assert_eq!(world.activations(&principal).await, [activation]);
    assert_eq!(world.audited(AuditAction::ActivationStarted).await, 1);

    // A dry run reads the same credentials and starts no activation.
    assert_eq!(world.taken(dry(world.take(&principal, "below/a"))).await, expected);
    assert_eq!(world.activations(&principal).await.len(), 1);
    assert_eq!(world.audited(AuditAction::ActivationStarted).await, 2);
}

/// An activation returns the current version, regardless of other stored versions.
pub async fn activation_fetches_current_version(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let id = world.saved_in("contract").await.id;
    let principal = world.activator(&world.integration().await);
    let (owner, sealer) = (world.read_organization().await.unwrap(), PlainSealer::new(world.ids.clone()));
    let taken = async || {
        let taken = world.taken(world.take(&principal, "contract")).await;
        assert_eq!(taken.len(), 1);
        let FetchedCredential { row, version, data } = taken.into_iter().next().unwrap();
        let card = row.open(&sealer, &owner).unwrap();
        let context = row.data_context(owner.id, card.version(version).unwrap());
        assert!(sealer.open(&owner.keys, context, &card.namespace, card.kind, &data).is_ok());
        version
    };
    let embedder = world.embedder();
    let read = world.versions(&embedder, id).await;
    let read = world.changed(world.stage(&embedder, &read)).await;
    assert_eq!(taken().await, 1);
    let read = world.changed(world.promotion(&embedder, &read, 2)).await;
    assert_eq!(taken().await, 2);
    let read = world.changed(world.replacement(&embedder, &read)).await;
    assert_eq!(taken().await, 3);
    world.changed(world.promotion(&embedder, &read, 2)).await;
    assert_eq!(taken().await, 2);
}

/// A rejected command is rejected for the first applicable reason, and changes nothing.
pub async fn refusals_are_ordered(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.activator(&world.integration().await);
    let take = async |most, limit| {
        let command = with(world.take(&principal, "contract"), |payload| {
            payload.most = most;
            payload.activation.as_mut().unwrap().limit = limit;
        });
        let check = world.store.fetch_credentials(dry(command.clone())).await.decided();
        (world.store.fetch_credentials(command).await.decided(), check)
    };
    let refused = |refusal: Refusal| (Err(refusal.clone()), Err(refusal));
    assert_eq!(take(0, 0).await, refused(Refusal::NamespaceEmpty));
    world.set_frozen("contract", true).await;
    assert_eq!(take(0, 0).await, refused(Refusal::Frozen));
    world.saved_in("contract").await;
    assert_eq!(take(0, 0).await, refused(Refusal::Frozen));
    world.set_frozen("contract", false).await;
    world.saved_in("contract").await;
    assert_eq!(take(1, 0).await, refused(Refusal::NamespaceTooLarge));
    let entries = world.audit_length().await;
    let limited = |limit| {
        with(world.take(&principal, "contract"), |payload| {
            payload.most = 2;
            payload.activation.as_mut().unwrap().limit = limit;
        })
    };
    let many = Err(Refusal::TooManyLive);
    assert_eq!(world.store.fetch_credentials(limited(0)).await.decided(), many);
    assert_eq!(world.audit_length().await, entries);
    assert_eq!(world.activations(&principal).await, []);
    assert_eq!(world.taken(limited(1)).await.len(), 2);

    for (ended, refusal) in [
        (IntegrationPrincipal { expires_at: Some(world.now()), ..principal.clone() }, IntegrationRefusal::Expired),
        (IntegrationPrincipal { token_until: Some(world.now()), ..principal.clone() }, IntegrationRefusal::Replaced),
    ] {
        denied(&world, &ended, refusal).await;
    }
}

/// An activation cannot return credentials of a namespace after it was frozen, even if both run concurrently.
pub async fn freeze_takes_effect_during_activations(suite: &dyn ContractStore) {
    const FROZEN: Result<Vec<FetchedCredential>, Refusal> = Err(Refusal::Frozen);
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let principal = world.activator(&world.integration().await);
    let mut takers = JoinSet::new();
    for _ in 0..6 {
        let store = Arc::clone(&world.store);
        let commands: Vec<_> = (0..6).map(|_| world.take(&principal, "contract")).collect();
        takers.spawn(async move {
            let mut frozen = false;
            for command in commands {
                // Each command is decided before or after the freeze.
                let outcome = store.fetch_credentials(command).await.decided();
                assert!(outcome == FROZEN || !frozen && outcome.is_ok(), "{outcome:?}");
                frozen = outcome.is_err();
            }
        });
    }
    world.set_frozen("contract", true).await;
    assert_eq!(world.store.fetch_credentials(world.take(&principal, "contract")).await.decided(), FROZEN);
    takers.join_all().await;
}

/// After any change an integration is rejected until its token is verified again.
pub async fn changed_integration_is_refused(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let mut found = world.integration().await;
    let like = world.activator(&found);
    for state in [IntegrationState::Active, IntegrationState::Disabled, IntegrationState::Active] {
        let principal = IntegrationPrincipal { seen: found.sealed.clone(), ..like.clone() };
        if found.stored.integration.state == IntegrationState::Active {
            world.taken(world.take(&principal, "contract")).await;
        }
        found = world.changed_integration(&found, set_state(state)).await;
        denied(&world, &principal, IntegrationRefusal::Changed).await;
    }
    let principal = world.activator(&found);
    world.taken(world.take(&principal, "contract")).await;
    world.delete_integration(&found).await;
    denied(&world, &principal, IntegrationRefusal::Unknown).await;
}

/// Integrations of a disabled organization are rejected until it is enabled again.
pub async fn closed_organizations_integrations_are_refused(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    world.saved_in("contract").await;
    other.saved_in("contract").await;
    let principal = world.activator(&world.integration().await);
    world.set_state(OrganizationState::Disabled).await;
    denied(&world, &principal, IntegrationRefusal::OrganizationDisabled).await;
    world.set_state(OrganizationState::Active).await;
    world.activate(&principal, "contract").await;
    // The principal is also rejected in another organization.
    let moved = IntegrationPrincipal { organization: other.organization, ..principal };
    denied(&other, &moved, IntegrationRefusal::Unknown).await;
}

/// The limit on active activations is exact under concurrent requests. Activations of other integrations do not count.
pub async fn count_of_active_activations_is_exact(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let principal = world.activator(&world.integration().await);
    let neighbour = world.activator(&world.integration().await);
    for _ in 0..4 {
        world.activate(&neighbour, "contract").await;
    }
    let limited = || with(world.take(&principal, "contract"), |payload| payload.activation.as_mut().unwrap().limit = 5);
    let many = Err(Refusal::TooManyLive);
    let outcomes = race((0..16).map(|_| {
        let (store, command) = (Arc::clone(&world.store), limited());
        async move { store.fetch_credentials(command).await.decided() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 5);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == many).count(), 11);
    assert_eq!(world.activations(&principal).await.len(), 5);
    assert_eq!(world.audited(AuditAction::ActivationStarted).await, 9);

    // An activation that expired or was ended no longer counts towards the limit.
    let one = world.activations(&principal).await[0].id;
    assert!(world.store.end_activation(world.end_activation(&principal, one)).await.unwrap());
    world.taken(limited()).await;
    assert_eq!(world.store.fetch_credentials(limited()).await.decided(), many);
    world.clock.advance_seconds(ACTIVATION_SECONDS);
    world.taken(limited()).await;
    assert_eq!(world.activations(&principal).await.len(), 1);
}

/// An integration lists only its own active activations, newest first.
pub async fn activations_are_listed_to_their_integration(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let (principal, neighbour) =
        (world.activator(&world.integration().await), world.activator(&world.integration().await));
    let mut expected = Vec::new();
    for _ in 0..3 {
        expected.insert(0, world.activate(&principal, "contract").await.0);
        world.activate(&neighbour, "contract").await;
        world.clock.advance_seconds(ACTIVATION_SECONDS / 4);
    }
    assert_eq!(live(&world, &principal).await, expected);
    let mut paged = Vec::new();
    while paged.len() < expected.len() {
        let query = ListActivations { after: paged.last().copied(), limit: 1, ..world.list_activations(&principal) };
        paged.extend(world.store.list_activations(query).await.unwrap().into_iter().map(|one| one.id));
    }
    assert_eq!(paged, expected);
    world.clock.advance_seconds(ACTIVATION_SECONDS / 4 - 1);
    assert_eq!(live(&world, &principal).await, expected);
    world.clock.advance_seconds(1);
    expected.pop();
    assert_eq!(live(&world, &principal).await, expected);
}

/// If several requests end the same activation, exactly one succeeds. No integration can end an activation of another,
/// or one that has ended.
pub async fn activation_ends_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let (principal, neighbour) =
        (world.activator(&world.integration().await), world.activator(&world.integration().await));
    let (id, _) = world.activate(&principal, "contract").await;
    let unknown = ActivationId::from_uuid(world.ids.random());
    for (who, which) in [(&neighbour, id), (&principal, unknown)] {
        let command = world.end_activation(who, which);
        assert!(!world.store.end_activation(command).await.unwrap());
    }
    let ended = race((0..8).map(|_| {
        let (store, command) = (Arc::clone(&world.store), world.end_activation(&principal, id));
        async move { store.end_activation(command).await.unwrap() }
    }))
    .await;
    assert_eq!(ended.into_iter().filter(|ended| *ended).count(), 1);
    assert_eq!(world.audited(AuditAction::ActivationEnded).await, 1);

    let (id, _) = world.activate(&principal, "contract").await;
    world.clock.advance_seconds(ACTIVATION_SECONDS);
    assert!(!world.store.end_activation(world.end_activation(&principal, id)).await.unwrap());
    assert_eq!(world.audited(AuditAction::ActivationEnded).await, 1);
}

/// Aborting ends an activation and is recorded, even if the activation had already ended. Activations of another
/// organization are unchanged.
pub async fn aborted_activation_is_deleted(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    world.saved_in("contract").await;
    let principal = world.activator(&world.integration().await);
    let (id, _) = world.activate(&principal, "contract").await;
    let abort = |world: &World<'_>| AbortActivation {
        organization: world.organization,
        activation: id,
        audit: world.audit(AuditAction::ActivationFailed),
    };
    other.store.abort_activation(abort(&other)).await.unwrap();
    assert_eq!(live(&world, &principal).await, [id]);
    for turn in 1..=2 {
        world.store.abort_activation(abort(&world)).await.unwrap();
        assert_eq!(live(&world, &principal).await, []);
        assert_eq!(world.audited(AuditAction::ActivationFailed).await, turn);
    }
}

/// The use of the current token is recorded to the minute; a rotation resets it, another change does not.
pub async fn token_use_is_recorded_to_the_minute(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let found = world.integration().await;
    let used = async || world.read_integration(found.stored.id).await.unwrap().last_used_at;
    assert_eq!(used().await, None);
    let principal = world.activator(&found);
    world.activate(&principal, "contract").await;
    let first = Some(world.now().floor_to_minute());
    assert_eq!(used().await, first);
    world.clock.advance_seconds(120);
    world.taken(dry(world.take(&principal, "contract"))).await;
    let second = Some(world.now().floor_to_minute());
    assert!(second > first && used().await == second);
    let same = world.changed_integration(&found, set_state(IntegrationState::Active)).await;
    assert_eq!(same.stored.last_used_at, second);
    let rotated = world.changed_integration(&same, world.rotation(Overlap::DEFAULT)).await;
    let previous = rotated.principal(found.stored.integration.token, world.now()).unwrap();
    world.activate(&previous, "contract").await;
    assert_eq!(used().await, None, "the new token has not been used");
    world.activate(&world.activator(&rotated), "contract").await;
    assert!(used().await.is_some());
}

fn dry(command: ForIntegration<FetchCredentials>) -> ForIntegration<FetchCredentials> {
    with(command, |payload| payload.activation = None)
}

pub(super) async fn live(world: &World<'_>, principal: &IntegrationPrincipal) -> Vec<ActivationId> {
    world.activations(principal).await.into_iter().map(|activation| activation.id).collect()
}

/// Asserts that every command of the principal is rejected for this reason, and that nothing is changed or recorded.
async fn denied(world: &World<'_>, principal: &IntegrationPrincipal, refusal: IntegrationRefusal) {
    let entries = world.audit_length().await;
    let denial = Denial::Integration(refusal);
    let outcome = world.store.fetch_credentials(world.take(principal, "contract")).await.settled();
    assert_eq!(outcome, Err(denial));
    let outcome = world.store.fetch_credentials(dry(world.take(principal, "nothing-here"))).await.settled();
    assert_eq!(outcome, Err(denial));
    assert_eq!(world.store.list_activations(world.list_activations(principal)).await.settled(), Err(denial));
    let unknown = ActivationId::from_uuid(world.ids.random());
    assert_eq!(world.store.find_activation(world.find_activation(principal, unknown)).await.settled(), Err(denial));
    assert_eq!(world.store.end_activation(world.end_activation(principal, unknown)).await.settled(), Err(denial));
    assert_eq!(world.audit_length().await, entries);
}
