//! Cases of the authorization before every operation on credentials.

use super::ContractStore;
use super::account_change::regrant;
use super::tools::Settled;
use super::world::{SESSION_SECONDS, World};
use crate::commands::CredentialCommands as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vault_core::account::{AccountChange, AccountState};
use vault_core::audit::AuditAction;
use vault_core::id::{CredentialId, SessionId};
use vault_core::organization::OrganizationState;
use vault_core::port::IdGenerator;
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::role::Role;

/// Returns a session of an editor and a credential that it saved.
async fn editor_at_work(world: &World<'_>) -> (SessionPrincipal, CredentialId) {
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let credential = world.saved(&Principal::Session(session.clone())).await;
    (session, credential)
}

/// Every request of an ended session is denied without effect.
pub async fn ended_session_is_refused_by_every_operation(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (session, credential) = editor_at_work(&world).await;
    world.log_out(&session).await;
    refused_everything(&world, &session, credential, Denial::SessionEnded).await;
}

/// A session is valid until its expiry, exclusively.
pub async fn expired_session_is_refused_by_every_operation(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (session, credential) = editor_at_work(&world).await;
    world.clock.advance_millis(SESSION_SECONDS * 1000 - 1);
    assert_eq!(world.listed(&Principal::Session(session.clone())).await, [credential]);
    world.clock.advance_millis(1);
    refused_everything(&world, &session, credential, Denial::SessionEnded).await;
}

/// Requests are denied if the account has another role than the token specifies, or does not exist.
pub async fn changed_account_is_refused_by_every_operation(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let credential = world.saved(&world.embedder()).await;
    for (role, state) in [(Role::Viewer, AccountState::Active), (Role::Editor, AccountState::Disabled)] {
        let holder = world.holder(Role::Editor).await;
        let session = world.log_in(&holder).await;
        world.change(&holder, regrant(role, state)).await;
        refused_everything(&world, &session, credential, Denial::AccountChanged).await;
    }
}

/// Requests for accounts of a disabled organization are denied, whatever their sessions.
pub async fn disabled_organization_is_refused_by_every_operation(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (session, credential) = editor_at_work(&world).await;
    world.set_state(OrganizationState::Disabled).await;
    refused_everything(&world, &session, credential, Denial::OrganizationDisabled).await;
}

/// A session belongs to one account with one role in one organization. All other claims are denied.
pub async fn session_is_refused_for_other_organizations(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (holder, colleague) = (world.holder(Role::Editor).await, world.holder(Role::Editor).await);
    let stranger = other.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let strange = other.log_in(&stranger).await;
    let credential = world.saved(&Principal::Session(session.clone())).await;
    let claims = [
        SessionPrincipal { session: SessionId::from_uuid(world.ids.random()), ..session.clone() },
        SessionPrincipal { account: colleague.account.grant.account, ..session.clone() },
        SessionPrincipal { account: stranger.account.grant.account, ..session.clone() },
        SessionPrincipal { role: Role::Admin, ..session.clone() },
        SessionPrincipal { organization: other.organization, ..session.clone() },
        SessionPrincipal { organization: world.organization, ..strange.clone() },
        SessionPrincipal { session: session.session, ..strange },
    ];
    for claim in claims {
        let principal = Principal::Session(claim.clone());
        let refusal = world.try_page(&principal, world.list(&principal)).await.settled().unwrap_err();
        refused_everything(&world, &claim, credential, refusal).await;
    }
    assert_eq!(world.listed(&Principal::Session(session)).await, [credential]);
}

/// After the end of a session is acknowledged, no request that starts later is authorized for it, also under load.
pub async fn session_end_takes_effect_immediately(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let principal = Principal::Session(session.clone());
    let ended = Arc::new(AtomicBool::new(false));
    let mut savers: Vec<_> = (0..8)
        .map(|_| {
            let (store, ended) = (Arc::clone(&world.store), Arc::clone(&ended));
            let commands: Vec<_> = (0..20).map(|_| world.save(&principal)).collect();
            tokio::spawn(async move {
                let mut saved = 0;
                for command in commands {
                    let late = ended.load(Ordering::SeqCst);
                    let done = store.save_credential(command).await.settled().is_ok();
                    assert!(!(late && done), "saved for a session that had ended");
                    saved += usize::from(done);
                }
                saved
            })
        })
        .collect();
    tokio::task::yield_now().await;
    world.log_out(&session).await;
    ended.store(true, Ordering::SeqCst);
    let mut saved = 0;
    for saver in savers.drain(..) {
        saved += saver.await.unwrap();
    }
    assert_eq!(world.listed(&world.embedder()).await.len(), saved);
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, saved);
}

/// Asserts that saving, listing, showing, deleting and ending the session are denied, and that nothing changes.
async fn refused_everything(world: &World<'_>, session: &SessionPrincipal, credential: CredentialId, refusal: Denial) {
    let principal = Principal::Session(session.clone());
    let entries = world.audit_length().await;
    let store = &world.store;
    assert_eq!(store.save_credential(world.save(&principal)).await.settled(), Err(refusal));
    assert_eq!(world.try_page(&principal, world.list(&principal)).await.settled().err(), Some(refusal));
    assert_eq!(world.show(&principal, credential).await.settled(), Err(refusal));
    assert_eq!(world.delete(&principal, credential).await.settled(), Err(refusal));
    assert_eq!(world.end_session(session, session.session).await.settled(), Err(refusal));
    assert_eq!(world.audit_length().await, entries);
    if world.read_organization().await.unwrap().is_active() {
        assert_eq!(world.listed(&world.embedder()).await, [credential]);
    }
}

/// Saved credentials belong to the organization: they are kept if the account is deleted or enrols again.
pub async fn credentials_outlive_account_that_saved_them(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let credential = world.saved(&Principal::Session(world.log_in(&holder).await)).await;
    let invitation = world.re_enrolling(&holder).await;
    let enrolled = world.re_enrolled(&invitation).await;
    let session = Principal::Session(world.log_in(&enrolled).await);
    assert_eq!(world.listed(&session).await, [credential]);
    world.change(&enrolled, AccountChange::Delete).await;
    assert_eq!(world.listed(&world.embedder()).await, [credential]);
}
