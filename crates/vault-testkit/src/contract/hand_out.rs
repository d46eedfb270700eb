//! Cases of handing out what an activation took.

use super::ActivationSubject;
use super::activation::live;
use super::activators::Activators;
use super::tools::{namespace, with};
use super::world::undescribed;
use std::sync::Arc;
use vault_core::activation::{HandOutRefusal, VendRule, VendedForm};
use vault_core::audit::AuditAction;
use vault_core::integration::{IntegrationPrincipal, IntegrationRefusal, Overlap};
use vault_core::organization::OrganizationState;
use vault_core::port::{CredentialChange, HandOut, StoredMetadata};

/// What is handed out is recorded once, and stays live.
pub async fn what_is_handed_out_is_recorded(suite: &dyn ActivationSubject) {
    let world = Activators::new(suite).await;
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
    assert_eq!(live(&world, &principal).await, [id]);
}

/// Whatever was revoked since the activation began, nothing is handed out: the activation is gone, and that is recorded.
pub async fn what_was_revoked_meanwhile_is_not_handed_out(suite: &dyn ActivationSubject) {
    let world = Activators::new(suite).await;
    let saved = [world.saved_in("contract").await.id, world.saved_in("contract").await.id];
    let mut stored = world.integration().await;
    let mut failed = 0;
    let mut refused = async |principal: &IntegrationPrincipal, id, act: &dyn Fn(&mut HandOut), expected| {
        let command = with(world.hand_out(principal, "contract", id, &saved), act);
        assert_eq!(world.store.hand_out(command).await.unwrap(), Some(expected));
        failed += 1;
        assert_eq!(world.audited(AuditAction::ActivationFailed).await, failed);
        if !matches!(expected, HandOutRefusal::Denied(_)) {
            assert_eq!(live(&world, principal).await, []);
        }
    };
    let unchanged: &dyn Fn(&mut HandOut) = &|_| {};

    let principal = world.activator(&stored);
    let (id, _) = world.activate(&principal, "contract").await;
    world.set_frozen("contract", true).await;
    refused(&principal, id, unchanged, HandOutRefusal::Frozen).await;
    world.set_frozen("contract", false).await;
    refused(&principal, id, unchanged, HandOutRefusal::Ended).await;

    let (id, _) = world.activate(&principal, "contract").await;
    assert!(world.store.end_activation(world.end_activation(&principal, id)).await.unwrap());
    refused(&principal, id, unchanged, HandOutRefusal::Ended).await;

    let (id, _) = world.activate(&principal, "contract").await;
    let replaced: &dyn Fn(&mut HandOut) = &|act| act.credentials[1].version = 2;
    refused(&principal, id, replaced, HandOutRefusal::Changed).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let elsewhere: &dyn Fn(&mut HandOut) = &|act| act.namespace = namespace("below/a");
    refused(&principal, id, elsewhere, HandOutRefusal::Changed).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let now = world.now();
    let over: &dyn Fn(&mut HandOut) = &|act| act.expires_at = now;
    refused(&principal, id, over, HandOutRefusal::Expired).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let dead: &dyn Fn(&mut HandOut) = &|act| act.credentials[0].expires_at = Some(now);
    refused(&principal, id, dead, HandOutRefusal::Expired).await;

    let (id, _) = world.activate(&principal, "contract").await;
    world.delete_credential(saved[1]).await;
    refused(&principal, id, unchanged, HandOutRefusal::Changed).await;

    let (id, _) = world.activate(&principal, "contract").await;
    let rotated = stored.integration.clone().rotated(world.token(), Overlap::DEFAULT, world.now());
    let before = principal;
    stored = world.replace_integration(&stored, rotated).await;
    let changed = HandOutRefusal::Denied(IntegrationRefusal::Changed);
    refused(&before, id, unchanged, changed).await;

    let principal = world.activator(&stored);
    let (id, _) = world.activate(&principal, "contract").await;
    world.set_state(OrganizationState::Disabled).await;
    let closed = HandOutRefusal::Denied(IntegrationRefusal::OrganizationClosed);
    refused(&principal, id, unchanged, closed).await;
    world.set_state(OrganizationState::Active).await;

    let (id, _) = world.activate(&principal, "contract").await;
    world.delete_integration(&stored).await;
    refused(&principal, id, unchanged, HandOutRefusal::Denied(IntegrationRefusal::Unknown)).await;
    assert_eq!(world.audited(AuditAction::NamespaceActivated).await, 0);
}

/// A hand-out and a deletion of its credential at once: one is decided first.
pub async fn a_hand_out_and_a_deletion_are_decided_one_after_the_other(suite: &dyn ActivationSubject) {
    let world = Activators::new(suite).await;
    let principal = world.activator(&world.integration().await);
    for _ in 0..8 {
        let saved = world.saved_in("contract").await.id;
        let (id, taken) = world.activate(&principal, "contract").await;
        let (store, hand_out) = (Arc::clone(&world.store), world.hand_out(&principal, "contract", id, &taken));
        let handed_out = tokio::spawn(async move { store.hand_out(hand_out).await.unwrap() });
        world.delete_credential(saved).await;
        assert!(matches!(handed_out.await.unwrap(), None | Some(HandOutRefusal::Changed)));
        let after = world.hand_out(&principal, "contract", id, &taken);
        assert!(world.store.hand_out(after).await.unwrap().is_some());
    }
}

/// What may only be handed out as something short-lived does not leave as it is, whatever was made ready.
pub async fn a_rule_that_came_meanwhile_holds(suite: &dyn ActivationSubject) {
    let world = Activators::new(suite).await;
    let principal = world.activator(&world.integration().await);
    let id = world.saved_in("contract").await.id;
    let (begun, _) = world.activate(&principal, "contract").await;
    let ruled = StoredMetadata { vend: VendRule::Short, ..undescribed() };
    world.change_credential(id, 1, CredentialChange::Describe, Some(ruled)).await;
    let raw = world.hand_out(&principal, "contract", begun, &[id]);
    assert_eq!(world.store.hand_out(raw).await.unwrap(), Some(HandOutRefusal::Changed));
    let (begun, _) = world.activate(&principal, "contract").await;
    let short = with(world.hand_out(&principal, "contract", begun, &[id]), |act| {
        act.credentials[0].form = VendedForm::Short;
    });
    assert_eq!(world.store.hand_out(short).await.unwrap(), None);
}
