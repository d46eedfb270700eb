//! Cases of [`SessionRepository`](vault_core::port::SessionRepository), and of the question before every vault
//! operation: may this principal still act?

use super::ContractStore;
use super::account_change::regrant;
use super::tools::{Settled, race};
use super::world::{SESSION_SECONDS, World};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vault_core::account::AccountState;
use vault_core::audit::AuditAction;
use vault_core::id::{CredentialId, SessionId};
use vault_core::organization::OrganizationState;
use vault_core::port::{IdGenerator, SessionUse};
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::session::{NewSession, StoredSession};

/// Of several that end a session at once, one is told that it did.
pub async fn a_session_ends_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (session, other) = (world.log_in(&holder).await, world.log_in(&holder).await);
    let answers = race((0..16).map(|_| {
        let (store, command) = (Arc::clone(&world.store), world.end_session(&session));
        async move { store.end_session(command).await.settled() }
    }))
    .await;
    assert_eq!(answers.iter().filter(|answer| **answer == Ok(true)).count(), 1);
    assert_eq!(answers.iter().filter(|answer| **answer == Err(Denial::SessionEnded)).count(), 15);
    assert_eq!(world.audited(AuditAction::LoggedOut).await, 1);
    assert_eq!(world.listed(&Principal::Session(other)).await, [], "the account's other session goes on");
}

/// Whoever holds an ended session can do nothing any more, and leaves no trace.
pub async fn an_ended_session_is_refused_everything(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let credential = world.saved(&Principal::Session(session.clone())).await;
    assert!(world.store.end_session(world.end_session(&session)).await.unwrap());
    refused_everything(&world, &session, credential, Denial::SessionEnded).await;
}

/// The owner's live sessions, the newest first, as they were made; nobody else's.
pub async fn sessions_are_listed_to_their_owner(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await);
    let dying = world.log_in(&holder).await;
    world.clock.advance_seconds(1);
    let ended = world.log_in(&holder).await;
    world.log_in(&colleague).await;
    world.clock.advance_seconds(1);
    let made_at = world.now();
    let mut last = [world.log_in(&holder).await, world.log_in(&holder).await];
    last.sort_by_key(|session| session.session); // of one moment, by id
    let [current, other] = &last;
    assert_eq!(world.sessions(current).await, [current.session, other.session, ended.session, dying.session]);
    let listed = world.store.list_sessions(current.clone(), world.now()).await.unwrap();
    let made = NewSession {
        id: current.session,
        created_at: made_at,
        expires_at: made_at.plus_seconds(SESSION_SECONDS),
        network: "192.0.2.0/24".to_owned(),
        client: Some("curl/8.0".to_owned()),
    };
    assert_eq!(listed[0], StoredSession { session: made, last_used_at: made_at });

    assert!(world.store.end_session(world.end_session(&ended)).await.unwrap());
    world.clock.advance_seconds(SESSION_SECONDS - 2);
    assert_eq!(world.sessions(current).await, [current.session, other.session]);
    assert_eq!(world.store.list_sessions(ended, world.now()).await.settled(), Err(Denial::SessionEnded));
}

/// The latest use of a session is kept, whatever order uses are written in; a session that is gone is skipped.
pub async fn the_latest_use_of_a_session_is_kept(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (session, ended) = (world.log_in(&holder).await, world.log_in(&holder).await);
    assert!(world.store.end_session(world.end_session(&ended)).await.unwrap());
    let organization = world.organization;
    let used = |session: &SessionPrincipal, at| SessionUse { organization, session: session.session, at };
    let last_used = async || world.store.list_sessions(session.clone(), world.now()).await.unwrap()[0].last_used_at;
    let later = world.now().plus_seconds(120);
    world.store.note_uses(vec![used(&session, later), used(&ended, later)]).await.unwrap();
    assert_eq!(last_used().await, later);
    world.store.note_uses(vec![used(&session, later.plus_seconds(-60))]).await.unwrap();
    assert_eq!(last_used().await, later);
    assert_eq!(world.sessions(&session).await, [session.session]);
}

/// One session ends another of the same account, once; another account's, an unknown one and an expired one are
/// not there.
pub async fn a_session_ends_another_of_its_account(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (holder, colleague) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await);
    let expired = world.log_in(&holder).await;
    world.clock.advance_seconds(SESSION_SECONDS);
    let [current, second] = [world.log_in(&holder).await, world.log_in(&holder).await];
    let theirs = world.log_in(&colleague).await;
    let strange = other.log_in(&other.holder(Role::Viewer).await).await;
    let entries = world.audit_length().await;
    let unknown = SessionId::from_uuid(world.ids.random());
    for session in [expired.session, theirs.session, strange.session, unknown] {
        let command = world.end_other_session(&current, session);
        assert!(!world.store.end_session(command).await.unwrap());
    }
    assert_eq!(world.audit_length().await, entries);
    world.own_account(&theirs).await;

    let ended = race((0..8).map(|_| {
        let (store, command) = (Arc::clone(&world.store), world.end_other_session(&current, second.session));
        async move { store.end_session(command).await.unwrap() }
    }))
    .await;
    assert_eq!(ended.iter().filter(|ended| **ended).count(), 1);
    assert_eq!(world.audited(AuditAction::SessionEnded).await, 1);
    assert_eq!(world.sessions(&current).await, [current.session]);
    let dead = world.end_other_session(&second, current.session);
    assert_eq!(world.store.end_session(dead).await.settled(), Err(Denial::SessionEnded));
}

/// A session works until the moment at which it expires, and not at it.
pub async fn an_expired_session_is_refused_everything(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let credential = world.saved(&Principal::Session(session.clone())).await;
    world.clock.advance_millis(SESSION_SECONDS * 1000 - 1);
    assert_eq!(world.listed(&Principal::Session(session.clone())).await, [credential]);
    world.clock.advance_millis(1);
    refused_everything(&world, &session, credential, Denial::SessionEnded).await;
}

/// The row no longer has what the token says: another role, or none.
pub async fn a_changed_account_is_refused_everything(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let credential = world.saved(&world.embedder()).await;
    for (role, state) in [(Role::Viewer, AccountState::Active), (Role::Editor, AccountState::Disabled)] {
        let holder = world.holder(Role::Editor).await;
        let session = world.log_in(&holder).await;
        world.change(&holder, regrant(&holder, role, state)).await;
        refused_everything(&world, &session, credential, Denial::AccountChanged).await;
    }
}

/// A disabled organization's accounts are refused, whatever their sessions.
pub async fn a_disabled_organization_is_refused_everything(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let credential = world.saved(&Principal::Session(session.clone())).await;
    world.set_state(OrganizationState::Disabled).await;
    refused_everything(&world, &session, credential, Denial::OrganizationClosed).await;
}

/// A session is one account's, in one organization, in one role; whoever claims anything else is refused.
pub async fn a_session_is_worth_nothing_to_others(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (holder, colleague) = (world.holder(Role::Editor).await, world.holder(Role::Editor).await);
    let stranger = other.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let strange = other.log_in(&stranger).await;
    let credential = world.saved(&Principal::Session(session.clone())).await;
    let claims = [
        SessionPrincipal { session: SessionId::from_uuid(world.ids.random()), ..session.clone() },
        SessionPrincipal { account: colleague.signed.grant.account, ..session.clone() },
        SessionPrincipal { account: stranger.signed.grant.account, ..session.clone() },
        SessionPrincipal { role: Role::Admin, ..session.clone() },
        SessionPrincipal { organization: other.organization, ..session.clone() },
        SessionPrincipal { organization: world.organization, ..strange.clone() },
        SessionPrincipal { session: session.session, ..strange },
    ];
    for claim in claims {
        let principal = Principal::Session(claim.clone());
        let refusal = world.store.list_credentials(world.list(&principal)).await.settled().unwrap_err();
        refused_everything(&world, &claim, credential, refusal).await;
    }
    assert_eq!(world.listed(&Principal::Session(session)).await, [credential]);
}

/// Once the end of a session is acknowledged, nothing that begins later is done for it, under load too.
pub async fn the_end_of_a_session_takes_effect_at_once(suite: &dyn ContractStore) {
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
    assert!(world.store.end_session(world.end_session(&session)).await.unwrap());
    ended.store(true, Ordering::SeqCst);
    let mut saved = 0;
    for saver in savers.drain(..) {
        saved += saver.await.unwrap();
    }
    assert_eq!(world.listed(&world.embedder()).await.len(), saved);
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, saved);
}

/// The principal is refused saving, listing, showing, deleting and ending the session, and nothing changes.
async fn refused_everything(world: &World<'_>, session: &SessionPrincipal, credential: CredentialId, refusal: Denial) {
    let principal = Principal::Session(session.clone());
    let entries = world.audit_length().await;
    let store = &world.store;
    assert_eq!(store.save_credential(world.save(&principal)).await.settled(), Err(refusal));
    assert_eq!(store.list_credentials(world.list(&principal)).await.settled(), Err(refusal));
    assert_eq!(store.show_credential(world.show(&principal, credential)).await.settled(), Err(refusal));
    assert_eq!(store.delete_credential(world.delete(&principal, credential)).await.settled(), Err(refusal));
    assert_eq!(store.end_session(world.end_session(session)).await.settled(), Err(refusal));
    assert_eq!(world.audit_length().await, entries);
    if world.store.organization(world.organization).await.unwrap().unwrap().state == OrganizationState::Active {
        assert_eq!(world.listed(&world.embedder()).await, [credential]);
    }
}
