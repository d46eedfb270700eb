//! Cases of sessions.

use super::ContractStore;
use super::tools::{Settled, race};
use super::world::{SESSION_SECONDS, World};
use vault_core::audit::AuditAction;
use vault_core::id::SessionId;
use vault_core::port::IdGenerator;
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::session::{EndSession, NewSession, RecordUses, SessionUse, StoredSession};

/// Of concurrent ends of a session exactly one succeeds.
pub async fn session_ends_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (session, other) = (world.log_in(&holder).await, world.log_in(&holder).await);
    let answers = race((0..16).map(|_| {
        let end = EndSession { organization: world.organization, session: session.session };
        let ending = world.running(&world.store, session.clone().into(), end);
        async move { ending.await.settled() }
    }))
    .await;
    assert_eq!(answers.iter().filter(|answer| **answer == Ok(true)).count(), 1);
    assert_eq!(answers.iter().filter(|answer| **answer == Err(Denial::SessionEnded)).count(), 15);
    assert_eq!(world.audited(AuditAction::LoggedOut).await, 1);
    assert_eq!(world.acts(&other).await, Ok(()), "the account's other session continues");
}

/// A user's active sessions are listed newest first, as they were created, without those of others.
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
    let listed = world.list_sessions(current).await.unwrap();
    let created = NewSession {
        id: current.session,
        created_at: made_at,
        expires_at: made_at.plus_seconds(SESSION_SECONDS),
        network: "192.0.2.0/24".to_owned(),
        client: Some("curl/8.0".to_owned()),
    };
    assert_eq!(listed[0], StoredSession { session: created, last_used_at: made_at });

    world.log_out(&ended).await;
    world.clock.advance_seconds(SESSION_SECONDS - 2);
    assert_eq!(world.sessions(current).await, [current.session, other.session]);
    assert_eq!(world.list_sessions(&ended).await.settled(), Err(Denial::SessionEnded));
}

/// The latest use of a session is kept, regardless of the order of writes; a session that no longer exists is skipped.
pub async fn latest_use_of_a_session_is_kept(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (session, ended) = (world.log_in(&holder).await, world.log_in(&holder).await);
    world.log_out(&ended).await;
    let organization = world.organization;
    let used = |session: &SessionPrincipal, at| SessionUse { organization, session: session.session, at };
    let last_used = async || world.list_sessions(&session).await.unwrap()[0].last_used_at;
    let record = async |uses| world.operate(&Principal::Operator, RecordUses::new(uses)).await.unwrap();
    let later = world.now().plus_seconds(120);
    record(vec![used(&session, later), used(&ended, later)]).await;
    assert_eq!(last_used().await, later);
    record(vec![used(&session, later.plus_seconds(-60))]).await;
    assert_eq!(last_used().await, later);
    assert_eq!(world.sessions(&session).await, [session.session]);
}

/// A session ends another one of the same account, once; it finds no unknown or expired session and none of another
/// account.
pub async fn session_ends_another_of_its_account(suite: &dyn ContractStore) {
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
        assert!(!world.end_session(&current, session).await.unwrap());
    }
    assert_eq!(world.audit_length().await, entries);
    world.own_account(&theirs).await;

    let ended = race((0..8).map(|_| {
        let end = EndSession { organization: world.organization, session: second.session };
        let ending = world.running(&world.store, current.clone().into(), end);
        async move { ending.await.unwrap() }
    }))
    .await;
    assert_eq!(ended.iter().filter(|ended| **ended).count(), 1);
    assert_eq!(world.audited(AuditAction::SessionEnded).await, 1);
    assert_eq!(world.sessions(&current).await, [current.session]);
    assert_eq!(world.end_session(&second, current.session).await.settled(), Err(Denial::SessionEnded));
}
