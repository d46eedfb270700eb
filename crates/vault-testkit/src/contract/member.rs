//! Cases of sessions that access credentials, for stores that have sessions.

use super::ContractStore;
use super::idempotency::keyed;
use super::tools::Settled as _;
use super::world::World;
use crate::commands::CredentialCommands as _;
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::role::Role;

/// A later session of the same account repeats a request of an earlier one.
pub async fn idempotency_key_outlives_its_session(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let [session, later] = world.two_sessions(Role::Editor).await;
    let command = keyed(&world, &Principal::Session(session.clone()), "key", "body");
    let created = command.payload.id;
    world.store.save_credential(command).await.unwrap();
    world.log_out(&session).await;
    let again = keyed(&world, &Principal::Session(session), "key", "body");
    assert_eq!(world.store.save_credential(again).await.settled(), Err(Denial::SessionEnded));
    let later = keyed(&world, &Principal::Session(later), "key", "body");
    assert_eq!(world.store.save_credential(later).await.decided(), Ok(created));
}

/// A session is authorized until it ends, only within its own organization, account and role.
pub async fn session_is_authorized_until_it_ends(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let [session, later] = world.two_sessions(Role::Editor).await;
    let principal = Principal::Session(session.clone());
    let id = world.saved(&principal).await;
    let list = async |claim: SessionPrincipal| {
        let principal = Principal::Session(claim);
        world.try_page(&principal, world.list(&principal)).await.settled().map(|page| page.credentials.len())
    };
    assert_eq!(list(session.clone()).await, Ok(1));
    for claim in [
        SessionPrincipal { role: Role::Admin, ..session.clone() },
        SessionPrincipal { organization: other.organization, ..session.clone() },
    ] {
        assert!(list(claim).await.is_err());
    }
    world.log_out(&session).await;
    assert_eq!(list(session).await, Err(Denial::SessionEnded));
    assert_eq!(world.delete(&principal, id).await.settled(), Err(Denial::SessionEnded));
    assert_eq!(list(later).await, Ok(1));
}
