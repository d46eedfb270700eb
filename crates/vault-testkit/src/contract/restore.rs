//! Cases of [`RestoreRepository`](vault_core::port::RestoreRepository). They revoke data of every organization, so each
//! needs a separate database: they are not among the cases of [`store_contract!`](crate::store_contract).

use super::ContractStore;
use super::own_account::pend;
use super::world::World;
use vault_core::Error;
use vault_core::audit::AuditAction;
use vault_core::login::AttemptOutcome;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{FinishRestore, Settled, StoreError};
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
    let first = world.store.restore_epoch().await.unwrap();

    let step = TimeStep(TimeStep::at(world.now()).0 + 1_000);
    let settle = |epoch, ends_invitations| {
        world.command(
            &Principal::Operator,
            AuditAction::DatabaseRestored,
            FinishRestore { epoch, step, ends_invitations },
        )
    };
    let refused =
        world.store.finish_restore(world.command(&principal, AuditAction::DatabaseRestored, settle(1, true).payload));
    assert!(matches!(refused.await, Err(StoreError::Denied(Denial::InsufficientRole))));
    assert_eq!(world.listed(&principal).await, [saved], "nothing was changed");

    let epoch = first + 7;
    let settled = world.store.finish_restore(settle(epoch, false)).await.unwrap().expect("a later epoch");
    let expected = Settled { sessions: 1, recovery_codes: 10, activations: 1, invitations: 0 };
    assert_eq!(settled, expected);
    assert_eq!(world.store.restore_epoch().await.unwrap(), epoch);
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

    for stale in [0, first, epoch] {
        assert_eq!(world.store.finish_restore(settle(stale, true)).await.unwrap(), None);
    }
    assert!(world.open(&invitation).await.is_some());
    let settled = world.store.finish_restore(settle(epoch + 1, true)).await.unwrap().expect("a later epoch");
    assert_eq!(settled, Settled { sessions: 1, recovery_codes: 0, activations: 0, invitations: 1 });
    assert!(world.open(&invitation).await.is_none());
    assert_eq!(world.audited(AuditAction::DatabaseRestored).await, 2);
}
