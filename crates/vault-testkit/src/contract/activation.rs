//! Cases of [`ActivationRepository`](vault_core::port::ActivationRepository).

use super::ContractStore;
use super::activators::ACTIVATION_SECONDS;
use super::tools::{namespace, race};
use super::world::World;
use std::sync::Arc;
use vault_core::activation::{Activation, VendMode};
use vault_core::audit::AuditAction;
use vault_core::id::ActivationId;
use vault_core::integration::{Integration, IntegrationPrincipal, IntegrationState, Overlap, PrincipalStale};
use vault_core::organization::OrganizationState;
use vault_core::port::{
    AbortActivation, IdGenerator, ListActivations, NewActivation, TakeCredentials, TakeOutcome, TakenCredential,
};

/// All credentials of exactly that namespace and organization, as they were saved, oldest first; a deleted one not.
pub async fn credentials_are_taken_as_they_were_saved(suite: &dyn ContractStore) {
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
    let principal_of_credentials = world.embedder();
    let deleted = world.store.delete_credential(world.delete(&principal_of_credentials, gone.id)).await;
    assert!(deleted.unwrap());
    let expected: Vec<_> = saved
        .into_iter()
        .map(|command| TakenCredential { id: command.id, kind: command.kind, version: 1, sealed: command.sealed })
        .collect();
    let command = world.take(&principal, "below/a");
    let id = command.activation.as_ref().unwrap().id;
    assert_eq!(world.taken(command).await, expected);
    let activation = Activation {
        id,
        organization: world.organization,
        integration: principal.integration,
        namespace: namespace("below/a"),
        vend: VendMode::PreferShort,
        credentials: 4,
        begun_at: world.now(),
        expires_at: world.now().plus_seconds(ACTIVATION_SECONDS),
    };
    assert_eq!(world.activations(&principal).await, [activation]);
    assert_eq!(world.audited(AuditAction::NamespaceActivated).await, 1);

    // A dry run takes the same, and begins nothing.
    assert_eq!(world.taken(dry(world.take(&principal, "below/a"))).await, expected);
    assert_eq!(world.activations(&principal).await.len(), 1);
    assert_eq!(world.audited(AuditAction::NamespaceActivated).await, 2);
}

/// What is refused is refused for the first of its reasons, and leaves nothing behind.
pub async fn refusals_come_in_their_order(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.activator(&world.integration().await);
    let take = async |principal: &IntegrationPrincipal, most, limit| {
        let mut command = world.take(principal, "contract");
        command.most = most;
        if let Some(new) = &mut command.activation {
            new.limit = limit;
        }
        let dry = world.store.take_credentials(dry(command.clone())).await.unwrap();
        (world.store.take_credentials(command).await.unwrap(), dry)
    };
    assert_eq!(take(&principal, 0, 0).await, (TakeOutcome::Empty, TakeOutcome::Empty));
    world.set_frozen("contract", true).await;
    assert_eq!(take(&principal, 0, 0).await, (TakeOutcome::Frozen, TakeOutcome::Frozen));
    world.saved_in("contract").await;
    assert_eq!(take(&principal, 0, 0).await, (TakeOutcome::Frozen, TakeOutcome::Frozen));
    let ended = IntegrationPrincipal { works_until: Some(world.now()), ..principal.clone() };
    let over = TakeOutcome::Refused(PrincipalStale::Over);
    assert_eq!(take(&ended, 0, 0).await, (over.clone(), over));
    world.set_frozen("contract", false).await;
    world.saved_in("contract").await;
    assert_eq!(take(&principal, 1, 0).await, (TakeOutcome::TooLarge, TakeOutcome::TooLarge));
    let entries = world.audit_length().await;
    let mut command = world.take(&principal, "contract");
    command.most = 2;
    command.activation.as_mut().unwrap().limit = 0;
    assert_eq!(world.store.take_credentials(command).await.unwrap(), TakeOutcome::TooManyLive);
    assert_eq!(world.audit_length().await, entries);
    assert_eq!(world.activations(&principal).await, []);
    let mut exactly = world.take(&principal, "contract");
    exactly.most = 2;
    exactly.activation.as_mut().unwrap().limit = 1;
    assert_eq!(world.taken(exactly).await.len(), 2);
}

/// Whatever was changed of an integration since it was verified, it is refused until it is verified again.
pub async fn a_changed_integration_is_refused(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let mut stored = world.integration().await;
    let rotated = stored.integration.clone().rotated(world.token(), Overlap::DEFAULT, world.now());
    let disabled = Integration { state: IntegrationState::Disabled, ..rotated.clone() };
    let like = world.activator(&stored);
    for change in [rotated.clone(), disabled, rotated] {
        let principal = IntegrationPrincipal { seen: stored.digest, ..like.clone() };
        if stored.integration.state == IntegrationState::Active {
            world.taken(world.take(&principal, "contract")).await;
        }
        stored = world.replace_integration(&stored, change).await;
        refused(&world, &principal, PrincipalStale::Changed).await;
    }
    let principal = world.activator(&stored);
    world.taken(world.take(&principal, "contract")).await;
    world.delete_integration(&stored).await;
    refused(&world, &principal, PrincipalStale::Gone).await;
}

/// A closed organization's integrations are refused, and work again when it is open.
pub async fn a_closed_organizations_integrations_are_refused(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    world.saved_in("contract").await;
    other.saved_in("contract").await;
    let principal = world.activator(&world.integration().await);
    world.set_state(OrganizationState::Disabled).await;
    refused(&world, &principal, PrincipalStale::OrganizationClosed).await;
    world.set_state(OrganizationState::Active).await;
    world.activate(&principal, "contract").await;
    // Nor is it worth anything in another organization.
    let moved = IntegrationPrincipal { organization: other.organization, ..principal };
    refused(&other, &moved, PrincipalStale::Gone).await;
}

/// As many live activations as allowed, however many ask at once; other integrations' do not count.
pub async fn the_number_of_live_activations_is_exact(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let principal = world.activator(&world.integration().await);
    let neighbour = world.activator(&world.integration().await);
    for _ in 0..4 {
        world.activate(&neighbour, "contract").await;
    }
    let limited = || {
        let mut command = world.take(&principal, "contract");
        command.activation.as_mut().unwrap().limit = 5;
        command
    };
    let outcomes = race((0..16).map(|_| {
        let (store, command) = (Arc::clone(&world.store), limited());
        async move { store.take_credentials(command).await.unwrap() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, TakeOutcome::Taken(_))).count(), 5);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == TakeOutcome::TooManyLive).count(), 11);
    assert_eq!(world.activations(&principal).await.len(), 5);
    assert_eq!(world.audited(AuditAction::NamespaceActivated).await, 9);

    // What is over, by itself or because it was ended, makes room.
    let one = world.activations(&principal).await[0].id;
    assert_eq!(world.store.end_activation(world.end_activation(&principal, one)).await.unwrap(), Ok(true));
    world.taken(limited()).await;
    assert_eq!(world.store.take_credentials(limited()).await.unwrap(), TakeOutcome::TooManyLive);
    world.clock.advance_seconds(ACTIVATION_SECONDS);
    world.taken(limited()).await;
    assert_eq!(world.activations(&principal).await.len(), 1);
}

/// One's own, newest first, while they live.
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
    assert_eq!(ids(&world, &principal).await, expected);
    world.clock.advance_seconds(ACTIVATION_SECONDS / 4 - 1);
    assert_eq!(ids(&world, &principal).await, expected);
    world.clock.advance_seconds(1);
    expected.pop();
    assert_eq!(ids(&world, &principal).await, expected);
}

/// Of several that end an activation at once, one is told that it did; nobody ends another's, or one that is over.
pub async fn an_activation_ends_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let (principal, neighbour) =
        (world.activator(&world.integration().await), world.activator(&world.integration().await));
    let (id, _) = world.activate(&principal, "contract").await;
    let unknown = ActivationId::from_uuid(world.ids.random());
    for (who, which) in [(&neighbour, id), (&principal, unknown)] {
        let command = world.end_activation(who, which);
        assert_eq!(world.store.end_activation(command).await.unwrap(), Ok(false));
    }
    let ended = race((0..8).map(|_| {
        let (store, command) = (Arc::clone(&world.store), world.end_activation(&principal, id));
        async move { store.end_activation(command).await.unwrap().expect("the integration may act") }
    }))
    .await;
    assert_eq!(ended.into_iter().filter(|ended| *ended).count(), 1);
    assert_eq!(world.audited(AuditAction::ActivationEnded).await, 1);

    let (id, _) = world.activate(&principal, "contract").await;
    world.clock.advance_seconds(ACTIVATION_SECONDS);
    assert_eq!(world.store.end_activation(world.end_activation(&principal, id)).await.unwrap(), Ok(false));
    assert_eq!(world.audited(AuditAction::ActivationEnded).await, 1);
}

/// What is taken back is gone, and that is on record, even if it was gone already; another organization's stays.
pub async fn an_aborted_activation_is_gone(suite: &dyn ContractStore) {
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
    assert_eq!(ids(&world, &principal).await, [id]);
    for turn in 1..=2 {
        world.store.abort_activation(abort(&world)).await.unwrap();
        assert_eq!(ids(&world, &principal).await, []);
        assert_eq!(world.audited(AuditAction::ActivationFailed).await, turn);
    }
}

fn dry(command: TakeCredentials) -> TakeCredentials {
    TakeCredentials { activation: None::<NewActivation>, ..command }
}

async fn ids(world: &World<'_>, principal: &IntegrationPrincipal) -> Vec<ActivationId> {
    world.activations(principal).await.into_iter().map(|activation| activation.id).collect()
}

/// The principal is refused everything for this reason, and nothing is changed or recorded.
async fn refused(world: &World<'_>, principal: &IntegrationPrincipal, stale: PrincipalStale) {
    let entries = world.audit_length().await;
    let outcome = world.store.take_credentials(world.take(principal, "contract")).await.unwrap();
    assert_eq!(outcome, TakeOutcome::Refused(stale));
    let outcome = world.store.take_credentials(dry(world.take(principal, "nothing-here"))).await.unwrap();
    assert_eq!(outcome, TakeOutcome::Refused(stale));
    let query = ListActivations { principal: principal.clone(), now: world.now() };
    assert_eq!(world.store.list_activations(query).await.unwrap(), Err(stale));
    let command = world.end_activation(principal, ActivationId::from_uuid(world.ids.random()));
    assert_eq!(world.store.end_activation(command).await.unwrap(), Err(stale));
    assert_eq!(world.audit_length().await, entries);
}
