//! Cases of [`ActivationRepository`](vault_core::port::ActivationRepository).

use super::ContractStore;
use super::activators::ACTIVATION_SECONDS;
use super::tools::{Settled as _, namespace, race, with};
use super::world::World;
use std::sync::Arc;
use vault_core::Refusal;
use vault_core::activation::{Activation, HandOutRefusal, VendMode};
use vault_core::audit::AuditAction;
use vault_core::id::ActivationId;
use vault_core::integration::{
    Integration, IntegrationPrincipal, IntegrationRefusal, IntegrationState, Overlap, StoredIntegration,
};
use vault_core::organization::OrganizationState;
use vault_core::port::{
    AbortActivation, ForIntegration, HandOut, IdGenerator, ListActivations, TakeCredentials, TakenCredential,
};
use vault_core::principal::Denial;

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
        .map(|command| TakenCredential {
            id: command.id,
            kind: command.kind,
            version: 1,
            sealed: command.sealed,
            rule: command.description.rule,
            last_activated_at: None,
        })
        .collect();
    let command = world.take(&principal, "below/a");
    let id = command.act.activation.as_ref().unwrap().id;
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
    assert_eq!(world.audited(AuditAction::ActivationBegun).await, 1);

    // A check takes the same, and begins nothing.
    assert_eq!(world.taken(dry(world.take(&principal, "below/a"))).await, expected);
    assert_eq!(world.activations(&principal).await.len(), 1);
    assert_eq!(world.audited(AuditAction::ActivationBegun).await, 2);
}

/// What is refused is refused for the first of its reasons, and leaves nothing behind.
pub async fn refusals_come_in_their_order(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.activator(&world.integration().await);
    let take = async |most, limit| {
        let command = with(world.take(&principal, "contract"), |act| {
            act.most = most;
            act.activation.as_mut().unwrap().limit = limit;
        });
        let check = world.store.take_credentials(dry(command.clone())).await.decided();
        (world.store.take_credentials(command).await.decided(), check)
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
        with(world.take(&principal, "contract"), |act| {
            act.most = 2;
            act.activation.as_mut().unwrap().limit = limit;
        })
    };
    let many = Err(Refusal::TooManyLive);
    assert_eq!(world.store.take_credentials(limited(0)).await.decided(), many);
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

/// Whatever was changed of an integration since it was verified, it is refused until it is verified again.
pub async fn a_changed_integration_is_refused(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let mut stored = world.integration().await;
    let rotated = stored.integration.clone().rotated(world.token(), Overlap::DEFAULT, world.now());
    let disabled = Integration { state: IntegrationState::Disabled, ..rotated.clone() };
    let like = world.activator(&stored);
    for change in [rotated.clone(), disabled, rotated] {
        let principal = IntegrationPrincipal { seen: stored.digest.code, ..like.clone() };
        if stored.integration.state == IntegrationState::Active {
            world.taken(world.take(&principal, "contract")).await;
        }
        stored = world.replace_integration(&stored, change).await;
        denied(&world, &principal, IntegrationRefusal::Changed).await;
    }
    let principal = world.activator(&stored);
    world.taken(world.take(&principal, "contract")).await;
    world.delete_integration(&stored).await;
    denied(&world, &principal, IntegrationRefusal::Unknown).await;
}

/// A closed organization's integrations are refused, and work again when it is open.
pub async fn a_closed_organizations_integrations_are_refused(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    world.saved_in("contract").await;
    other.saved_in("contract").await;
    let principal = world.activator(&world.integration().await);
    world.set_state(OrganizationState::Disabled).await;
    denied(&world, &principal, IntegrationRefusal::OrganizationClosed).await;
    world.set_state(OrganizationState::Active).await;
    world.activate(&principal, "contract").await;
    // Nor is it worth anything in another organization.
    let moved = IntegrationPrincipal { organization: other.organization, ..principal };
    denied(&other, &moved, IntegrationRefusal::Unknown).await;
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
    let limited = || with(world.take(&principal, "contract"), |act| act.activation.as_mut().unwrap().limit = 5);
    let many = Err(Refusal::TooManyLive);
    let outcomes = race((0..16).map(|_| {
        let (store, command) = (Arc::clone(&world.store), limited());
        async move { store.take_credentials(command).await.decided() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 5);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == many).count(), 11);
    assert_eq!(world.activations(&principal).await.len(), 5);
    assert_eq!(world.audited(AuditAction::ActivationBegun).await, 9);

    // What is over, by itself or because it was ended, makes room.
    let one = world.activations(&principal).await[0].id;
    assert!(world.store.end_activation(world.end_activation(&principal, one)).await.unwrap());
    world.taken(limited()).await;
    assert_eq!(world.store.take_credentials(limited()).await.decided(), many);
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
    let mut paged = Vec::new();
    while paged.len() < expected.len() {
        let query = ListActivations { after: paged.last().copied(), limit: 1, ..world.list_activations(&principal) };
        paged.extend(world.store.list_activations(query).await.unwrap().into_iter().map(|one| one.id));
    }
    assert_eq!(paged, expected);
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

/// What is handed out is recorded once, and stays live.
pub async fn what_is_handed_out_is_recorded(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let saved = [world.saved_in("contract").await.id, world.saved_in("contract").await.id];
    let principal = world.activator(&world.integration().await);
    let (id, taken) = world.activate(&principal, "contract").await;
    assert_eq!(taken, saved);
    // What was saved meanwhile stops nothing.
    world.saved_in("contract").await;
    let command = world.hand_out(&principal, "contract", id, &taken);
    assert_eq!(world.store.hand_out(command).await.unwrap(), None);
    assert_eq!(world.audited(AuditAction::NamespaceActivated).await, 1);
    assert_eq!(world.audited(AuditAction::ActivationFailed).await, 0);
    assert_eq!(ids(&world, &principal).await, [id]);
}

/// Whatever was revoked since the activation began, nothing is handed out: the activation is gone, and that is recorded.
pub async fn what_was_revoked_meanwhile_is_not_handed_out(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let saved = [world.saved_in("contract").await.id, world.saved_in("contract").await.id];
    let mut stored = world.integration().await;
    let mut failed = 0;
    let mut refused = async |stored: &StoredIntegration,
                             principal: &IntegrationPrincipal,
                             id,
                             act: &dyn Fn(&mut HandOut),
                             expected| {
        let command = with(world.hand_out(principal, "contract", id, &saved), act);
        assert_eq!(world.store.hand_out(command).await.unwrap(), Some(expected));
        failed += 1;
        assert_eq!(world.audited(AuditAction::ActivationFailed).await, failed);
        let again = world.read_integration(&stored.integration).await.map(|now| world.activator(&now));
        if let Some(principal) = again.filter(|_| !matches!(expected, HandOutRefusal::Denied(_))) {
            assert_eq!(ids(&world, &principal).await, []);
        }
    };
    let unchanged: &dyn Fn(&mut HandOut) = &|_| {};

    let principal = world.activator(&stored);
    let (id, _) = world.activate(&principal, "contract").await;
    world.set_frozen("contract", true).await;
    refused(&stored, &principal, id, unchanged, HandOutRefusal::Frozen).await;
    world.set_frozen("contract", false).await;
    refused(&stored, &principal, id, unchanged, HandOutRefusal::Ended).await;

    let (id, _) = world.activate(&principal, "contract").await;
    assert!(world.store.end_activation(world.end_activation(&principal, id)).await.unwrap());
    refused(&stored, &principal, id, unchanged, HandOutRefusal::Ended).await;

    let (id, _) = world.activate(&principal, "contract").await;
    let replaced: &dyn Fn(&mut HandOut) = &|act| act.credentials[1].version = 2;
    refused(&stored, &principal, id, replaced, HandOutRefusal::Changed).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let elsewhere: &dyn Fn(&mut HandOut) = &|act| act.namespace = namespace("below/a");
    refused(&stored, &principal, id, elsewhere, HandOutRefusal::Changed).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let now = world.now();
    let over: &dyn Fn(&mut HandOut) = &|act| act.expires_at = now;
    refused(&stored, &principal, id, over, HandOutRefusal::Expired).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let dead: &dyn Fn(&mut HandOut) = &|act| act.credentials[0].expires_at = Some(now);
    refused(&stored, &principal, id, dead, HandOutRefusal::Expired).await;

    let (id, _) = world.activate(&principal, "contract").await;
    let member = world.embedder();
    assert!(world.store.delete_credential(world.delete(&member, saved[1])).await.unwrap());
    refused(&stored, &principal, id, unchanged, HandOutRefusal::Changed).await;

    let (id, _) = world.activate(&principal, "contract").await;
    let rotated = stored.integration.clone().rotated(world.token(), Overlap::DEFAULT, world.now());
    let before = principal;
    stored = world.replace_integration(&stored, rotated).await;
    let changed = HandOutRefusal::Denied(IntegrationRefusal::Changed);
    refused(&stored, &before, id, unchanged, changed).await;

    let principal = world.activator(&stored);
    let (id, _) = world.activate(&principal, "contract").await;
    world.set_state(OrganizationState::Disabled).await;
    let closed = HandOutRefusal::Denied(IntegrationRefusal::OrganizationClosed);
    refused(&stored, &principal, id, unchanged, closed).await;
    world.set_state(OrganizationState::Active).await;

    let (id, _) = world.activate(&principal, "contract").await;
    world.delete_integration(&stored).await;
    refused(&stored, &principal, id, unchanged, HandOutRefusal::Denied(IntegrationRefusal::Unknown)).await;
    assert_eq!(world.audited(AuditAction::NamespaceActivated).await, 0);
}

/// A hand-out and a deletion of its credential at once: one is decided first.
pub async fn a_hand_out_and_a_deletion_are_decided_one_after_the_other(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.activator(&world.integration().await);
    let member = world.embedder();
    for _ in 0..8 {
        let saved = world.saved_in("contract").await.id;
        let (id, taken) = world.activate(&principal, "contract").await;
        let outcomes = race((0..2).map(|turn| {
            let store = Arc::clone(&world.store);
            let (hand_out, delete) = (world.hand_out(&principal, "contract", id, &taken), world.delete(&member, saved));
            async move {
                if turn == 0 {
                    store.hand_out(hand_out).await.unwrap()
                } else {
                    assert!(store.delete_credential(delete).await.unwrap());
                    None
                }
            }
        }))
        .await;
        assert!(matches!(outcomes[0], None | Some(HandOutRefusal::Changed)));
        let after = world.hand_out(&principal, "contract", id, &taken);
        assert!(world.store.hand_out(after).await.unwrap().is_some());
    }
}

/// The use of the current token is noted to the minute; a rotation forgets it, another change does not.
pub async fn the_use_of_a_token_is_noted_to_the_minute(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let stored = world.integration().await;
    let used =
        async |stored: &StoredIntegration| world.read_integration(&stored.integration).await.unwrap().last_used_at;
    assert_eq!(used(&stored).await, None);
    let principal = world.activator(&stored);
    world.activate(&principal, "contract").await;
    let first = Some(world.now().floor_to_minute());
    assert_eq!(used(&stored).await, first);
    world.clock.advance_seconds(120);
    world.taken(dry(world.take(&principal, "contract"))).await;
    let second = Some(world.now().floor_to_minute());
    assert!(second > first && used(&stored).await == second);
    let same = stored.integration.clone();
    let stored = world.replace_integration(&stored, same).await;
    assert_eq!(stored.last_used_at, second);
    let rotated = stored.integration.clone().rotated(world.token(), Overlap::DEFAULT, world.now());
    let before = stored.integration.token;
    let stored = world.replace_integration(&stored, rotated).await;
    let previous = stored.integration.principal(before, stored.digest.code, world.now()).unwrap();
    world.activate(&previous, "contract").await;
    assert_eq!(used(&stored).await, None, "the new token has not been used");
    world.activate(&world.activator(&stored), "contract").await;
    assert!(used(&stored).await.is_some());
}

fn dry(command: ForIntegration<TakeCredentials>) -> ForIntegration<TakeCredentials> {
    with(command, |act| act.activation = None)
}

async fn ids(world: &World<'_>, principal: &IntegrationPrincipal) -> Vec<ActivationId> {
    world.activations(principal).await.into_iter().map(|activation| activation.id).collect()
}

/// The principal is refused everything for this reason, and nothing is changed or recorded.
async fn denied(world: &World<'_>, principal: &IntegrationPrincipal, refusal: IntegrationRefusal) {
    let entries = world.audit_length().await;
    let denial = Denial::Integration(refusal);
    let outcome = world.store.take_credentials(world.take(principal, "contract")).await.settled();
    assert_eq!(outcome, Err(denial));
    let outcome = world.store.take_credentials(dry(world.take(principal, "nothing-here"))).await.settled();
    assert_eq!(outcome, Err(denial));
    assert_eq!(world.store.list_activations(world.list_activations(principal)).await.settled(), Err(denial));
    let command = world.end_activation(principal, ActivationId::from_uuid(world.ids.random()));
    assert_eq!(world.store.end_activation(command).await.settled(), Err(denial));
    assert_eq!(world.audit_length().await, entries);
}
