//! Cases of [`FinishRestore`]. They revoke data of every organization, so each
//! needs a separate database: they are not among the cases of [`store_contract!`](crate::store_contract).

use super::ContractStore;
use super::key::instance;
use super::own_account::pend;
use super::world::World;
use vault_core::Error;
use vault_core::login::AttemptOutcome;
use vault_core::maintenance::{FinishRestore, Settled};
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::principal::{Denial, Principal};
use vault_core::role::Role;

/// Finishing a restore revokes sessions, recovery codes, activations, unconfirmed TOTP secrets and drafts. Time steps
/// count as used. Credentials are kept.
pub async fn finished_restore_revokes_earlier_rights(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    pend(&world, &holder, &session).await;
    let principal = Principal::Session(session);
    let saved = world.saved(&principal).await;
    let (invitation, _) = world.invited(Role::Viewer).await;
    world.drafted(&invitation).await;
    let activator = world.activator(&world.integration().await);
    let mut take = world.take(&activator, "contract");
    take.payload.most = 10;
    world.taken(take).await;
    assert!(world.store.create_instance(instance(&world)).await.unwrap(), "this case has a separate database");
    let epoch = async || world.store.instance().await.unwrap().unwrap().restore_epoch;

    let refused = world.operate(&principal, FinishRestore { later_epoch: 1, ends_invitations: true }).await;
    assert!(matches!(refused, Err(Error::Denied(Denial::InsufficientRole))));
    assert_eq!((epoch().await, world.listed(&principal).await), (0, vec![saved]), "nothing was changed");

    // After the time steps of earlier logins.
    world.clock.advance_seconds(1_800);
    let step = TimeStep::at(world.now());
    let finish = FinishRestore { later_epoch: 0, ends_invitations: false };
    let settled = world.operate(&Principal::Operator, finish).await.unwrap();
    let expected = Settled { sessions: 1, recovery_codes: 10, activations: 1, invitations: 0 };
    assert_eq!(settled, expected);
    let first = epoch().await;
    assert_eq!(i64::try_from(first).unwrap(), world.now().as_seconds());
    assert!(world.open(&invitation).await.is_some_and(|open| open.draft.is_none()));
    let evaluated = world.try_page(&principal, world.list(&principal)).await;
    assert!(matches!(evaluated, Err(Error::Denied(_))), "the session has ended");
    assert_eq!(world.activations(&activator).await.len(), 0);
    let code = PasscodeProof::RecoveryCode(holder.recovery_codes[0]);
    for spent in [code, PasscodeProof::Step(step), PasscodeProof::Step(TimeStep(step.0 - 1))] {
        let login = world.complete_login(&holder, world.network(), spent);
        assert!(!matches!(world.conclude(login).await, AttemptOutcome::Completed));
    }
    let next = world.complete_login(&holder, world.network(), PasscodeProof::Step(step.next()));
    assert_eq!(world.conclude(next).await, AttemptOutcome::Completed);
    assert_eq!(world.listed(&world.embedder()).await, [saved]);

    let again = FinishRestore { later_epoch: 7, ends_invitations: true };
    let settled = world.operate(&Principal::Operator, again).await.unwrap();
    assert_eq!(settled, Settled { sessions: 1, recovery_codes: 0, activations: 0, invitations: 1 });
    assert!(world.open(&invitation).await.is_none());
    assert_eq!(epoch().await, first + 1);
    world.operate(&Principal::Operator, FinishRestore { later_epoch: first + 7, ..again }).await.unwrap();
    assert_eq!(epoch().await, first + 8);
}
