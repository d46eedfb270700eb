//! Cases of returning the credentials of an activation.

use super::ContractStore;
use super::activation::live;
use super::activators::ACTIVATION_SECONDS;
use super::tools::{namespace, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use std::sync::Arc;
use vault_core::activation::{Activation, IssuanceRefusal, IssueCredentials, VendRule, VendedForm};
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialEdit, CredentialPatch};
use vault_core::integration::{IntegrationPrincipal, IntegrationRefusal, Overlap};
use vault_core::organization::OrganizationState;

/// Issuing credentials is recorded once, and the activation stays active.
pub async fn issuance_is_recorded(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let saved = [world.saved_in("contract").await.id, world.saved_in("contract").await.id];
    let principal = world.activator(&world.integration().await);
    let (id, taken) = world.activate(&principal, "contract").await;
    assert_eq!(taken, saved);
    // Credentials saved in between do not prevent it.
    world.saved_in("contract").await;
    let command = world.issue_credentials(&principal, "contract", id, &taken);
    assert_eq!(world.store.issue_credentials(command).await.unwrap(), None);
    assert_eq!(world.audited(AuditAction::NamespaceActivated).await, 1);
    assert_eq!(world.audited(AuditAction::ActivationFailed).await, 0);
    assert_eq!(live(&world, &principal).await, [id]);
}

/// After any revocation since the start of the activation, no credentials are issued: the activation is ended, and that
/// is recorded.
pub async fn credentials_revoked_since_fetch_are_not_issued(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let saved = [world.saved_in("contract").await.id, world.saved_in("contract").await.id];
    let mut found = world.integration().await;
    let mut failed = 0;
    let mut refused =
        async |principal: &IntegrationPrincipal, id, payload: &dyn Fn(&mut IssueCredentials), expected| {
            let command = with(world.issue_credentials(principal, "contract", id, &saved), payload);
            assert_eq!(world.store.issue_credentials(command).await.unwrap(), Some(expected));
            failed += 1;
            assert_eq!(world.audited(AuditAction::ActivationFailed).await, failed);
            if !matches!(expected, IssuanceRefusal::Denied(_)) {
                assert_eq!(live(&world, principal).await, []);
            }
        };
    let unchanged: &dyn Fn(&mut IssueCredentials) = &|_| {};

    let principal = world.activator(&found);
    let (id, _) = world.activate(&principal, "contract").await;
    world.set_frozen("contract", true).await;
    refused(&principal, id, unchanged, IssuanceRefusal::Frozen).await;
    world.set_frozen("contract", false).await;
    refused(&principal, id, unchanged, IssuanceRefusal::Ended).await;

    let (id, _) = world.activate(&principal, "contract").await;
    assert!(world.store.end_activation(world.end_activation(&principal, id)).await.unwrap());
    refused(&principal, id, unchanged, IssuanceRefusal::Ended).await;

    let (id, _) = world.activate(&principal, "contract").await;
    let replaced: &dyn Fn(&mut IssueCredentials) = &|payload| payload.credentials[1].version = 2;
    refused(&principal, id, replaced, IssuanceRefusal::Changed).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let elsewhere: &dyn Fn(&mut IssueCredentials) = &|payload| payload.namespace = namespace("below/a");
    refused(&principal, id, elsewhere, IssuanceRefusal::Changed).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let now = world.now();
    let over: &dyn Fn(&mut IssueCredentials) = &|payload| payload.expires_at = now;
    refused(&principal, id, over, IssuanceRefusal::Expired).await;
    let (id, _) = world.activate(&principal, "contract").await;
    let dead: &dyn Fn(&mut IssueCredentials) = &|payload| payload.credentials[0].expires_at = Some(now);
    refused(&principal, id, dead, IssuanceRefusal::Expired).await;

    let (id, _) = world.activate(&principal, "contract").await;
    world.delete_credential(saved[1]).await;
    refused(&principal, id, unchanged, IssuanceRefusal::Changed).await;

    let (id, _) = world.activate(&principal, "contract").await;
    let before = principal;
    found = world.changed_integration(&found, world.rotation(Overlap::DEFAULT)).await;
    let changed = IssuanceRefusal::Denied(IntegrationRefusal::Changed);
    refused(&before, id, unchanged, changed).await;

    let principal = world.activator(&found);
    let (id, _) = world.activate(&principal, "contract").await;
    world.set_state(OrganizationState::Disabled).await;
    let closed = IssuanceRefusal::Denied(IntegrationRefusal::OrganizationDisabled);
    refused(&principal, id, unchanged, closed).await;
    world.set_state(OrganizationState::Active).await;

    let (id, _) = world.activate(&principal, "contract").await;
    world.delete_integration(&found).await;
    refused(&principal, id, unchanged, IssuanceRefusal::Denied(IntegrationRefusal::Unknown)).await;
    assert_eq!(world.audited(AuditAction::NamespaceActivated).await, 0);
}

/// If a credential is issued and deleted concurrently, one runs entirely before the other.
pub async fn issuance_and_deletion_are_serialized(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.activator(&world.integration().await);
    for _ in 0..8 {
        let saved = world.saved_in("contract").await.id;
        let (id, taken) = world.activate(&principal, "contract").await;
        let (store, issue_credentials) =
            (Arc::clone(&world.store), world.issue_credentials(&principal, "contract", id, &taken));
        let issued_credentials = tokio::spawn(async move { store.issue_credentials(issue_credentials).await.unwrap() });
        world.delete_credential(saved).await;
        assert!(matches!(issued_credentials.await.unwrap(), None | Some(IssuanceRefusal::Changed)));
        let after = world.issue_credentials(&principal, "contract", id, &taken);
        assert!(world.store.issue_credentials(after).await.unwrap().is_some());
    }
}

/// A credential that may only be returned as a short-lived one is never returned raw, whatever was prepared before the
/// rule.
pub async fn concurrently_added_vend_rule_applies(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.activator(&world.integration().await);
    let id = world.saved_in("contract").await.id;
    let (started, _) = world.activate(&principal, "contract").await;
    let embedder = world.embedder();
    let read = world.versions(&embedder, id).await;
    let patch = CredentialPatch { vend: Some(VendRule::Short), ..CredentialPatch::default() };
    world.changed(world.change_version(&embedder, &read, CredentialEdit::Describe(patch), None)).await;
    let raw = world.issue_credentials(&principal, "contract", started, &[id]);
    assert_eq!(world.store.issue_credentials(raw).await.unwrap(), Some(IssuanceRefusal::Changed));
    let (started, _) = world.activate(&principal, "contract").await;
    let short = with(world.issue_credentials(&principal, "contract", started, &[id]), |payload| {
        payload.credentials[0].form = VendedForm::Short;
    });
    assert_eq!(world.store.issue_credentials(short).await.unwrap(), None);
}

/// Renewal assigns an active activation a new expiry and the current number of returned credentials. Only its own
/// integration can renew it, and only while it is active.
pub async fn activation_is_renewable_until_expiry(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let first = world.saved_in("contract").await.id;
    let (principal, neighbour) =
        (world.activator(&world.integration().await), world.activator(&world.integration().await));
    let (id, _) = world.activate(&principal, "contract").await;
    let started = world.activations(&principal).await;
    let found = async |who, id| world.store.find_activation(world.find_activation(who, id)).await.unwrap();
    assert_eq!(found(&principal, id).await.as_ref(), started.first());
    assert_eq!(found(&neighbour, id).await, None);

    world.clock.advance_seconds(ACTIVATION_SECONDS - 1);
    let both = [first, world.saved_in("contract").await.id];
    assert_eq!(world.store.issue_credentials(world.renew(&principal, id, &both)).await.unwrap(), None);
    let renewed =
        Activation { expires_at: world.now().plus_seconds(ACTIVATION_SECONDS), credentials: 2, ..started[0].clone() };
    assert_eq!(found(&principal, id).await.as_ref(), Some(&renewed));
    assert_eq!(world.activations(&principal).await, [renewed]);
    assert_eq!(world.audited(AuditAction::ActivationRenewed).await, 1);

    let refused = async |who| world.store.issue_credentials(world.renew(who, id, &both)).await.unwrap();
    assert_eq!(refused(&neighbour).await, Some(IssuanceRefusal::Ended));
    world.clock.advance_seconds(ACTIVATION_SECONDS);
    assert_eq!(found(&principal, id).await, None);
    assert_eq!(refused(&principal).await, Some(IssuanceRefusal::Ended));
    assert_eq!(live(&world, &principal).await, []);
    assert_eq!(world.audited(AuditAction::ActivationRenewed).await, 1);
    assert_eq!(world.audited(AuditAction::ActivationRenewalFailed).await, 2);
}

/// A rejected renewal is recorded and does not change the end of the activation.
pub async fn refused_renewal_keeps_activation(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let saved = [world.saved_in("contract").await.id];
    let principal = world.activator(&world.integration().await);
    let (id, _) = world.activate(&principal, "contract").await;
    let before = world.activations(&principal).await;
    world.clock.advance_seconds(1);
    let renew = async |payload: &dyn Fn(&mut IssueCredentials)| {
        let command = with(world.renew(&principal, id, &saved), payload);
        world.store.issue_credentials(command).await.unwrap()
    };
    assert_eq!(renew(&|payload| payload.credentials[0].version = 2).await, Some(IssuanceRefusal::Changed));
    let now = world.now();
    assert_eq!(renew(&|payload| payload.expires_at = now).await, Some(IssuanceRefusal::Expired));
    world.set_frozen("contract", true).await;
    assert_eq!(renew(&|_| {}).await, Some(IssuanceRefusal::Frozen));
    assert_eq!(world.activations(&principal).await, before);
    assert_eq!(world.audited(AuditAction::ActivationRenewalFailed).await, 3);
    world.set_frozen("contract", false).await;
    assert_eq!(renew(&|_| {}).await, None);
}

/// After a concurrent renewal and end of an activation, the activation is ended in any order.
pub async fn renewal_and_end_are_serialized(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let saved = [world.saved_in("contract").await.id];
    let principal = world.activator(&world.integration().await);
    for _ in 0..8 {
        let (id, _) = world.activate(&principal, "contract").await;
        let (store, renewal) = (Arc::clone(&world.store), world.renew(&principal, id, &saved));
        let renewed = tokio::spawn(async move { store.issue_credentials(renewal).await.unwrap() });
        assert!(world.store.end_activation(world.end_activation(&principal, id)).await.unwrap());
        assert!(matches!(renewed.await.unwrap(), None | Some(IssuanceRefusal::Ended)));
        assert_eq!(live(&world, &principal).await, []);
    }
}
