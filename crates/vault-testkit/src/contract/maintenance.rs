//! Cases of [maintenance](vault_core::maintenance).
//!
//! `DeleteExpired` deletes expired rows in the whole database. These cases therefore run at times long before those of
//! all other cases, whose rows have not expired then.

use super::ContractStore;
use super::idempotency::keyed;
use super::own_account::pend;
use super::tools::{by_address, race, with};
use super::world::{SESSION_SECONDS, World};
use crate::commands::CredentialCommands as _;
use std::collections::HashMap;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::check::CheckReason;
use vault_core::credential::{LastCheck, RecordCheck, VersionKey};
use vault_core::credential_counts::{Checked, CountedCredentials, ExpiryBounds};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::integration::IntegrationPrincipal;
use vault_core::invitation::INVITATION_SECONDS;
use vault_core::lockout::{FREE_ATTEMPTS, NETWORK_KNOWN_SECONDS};
use vault_core::login::{AttemptOutcome, Reservation};
use vault_core::maintenance::{
    CheckStore, CountCredentials, CountedSlice, EXPIRED_SLICE, Expired, IDEMPOTENCY_SECONDS, ProveSpace,
    ReadMostKeyUses,
};
use vault_core::notice::NOTICE_SECONDS;
use vault_core::organization::CountKeyUses;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::time::Timestamp;

/// 2001-09-09T01:46:40Z.
const LONG_AGO: Timestamp = Timestamp::from_millis(1_000_000_000_000);
/// More rows than one slice.
const MANY: usize = 512;
const CONTENDERS: usize = 16;

/// Sessions, idempotency keys, invitations, pending TOTP secrets, notices and networks are deleted in slices after they
/// expire and not before.
pub async fn expired_rows_are_deleted_in_slices(suite: &dyn ContractStore) {
    let world = World::at(suite, LONG_AGO).await;
    let principal = world.embedder();
    log_in_often(&world).await;
    save_often(&world, &principal).await;
    let activator = activate_twice(&world).await;
    let replaced = world.replaced(&principal).await;
    let holder = world.holder(Role::Editor).await;
    let home = world.network();
    let dying = Principal::Session(world.log_in_from(&holder, home).await);
    let entries = world.audit_length().await;

    let (invitation, _) = world.invited(Role::Viewer).await;
    let reported = world.holder(Role::Viewer).await;
    let session = world.log_in(&reported).await;
    pend(&world, &reported, &session).await;
    let other = world.holder(Role::Viewer).await;
    let login = PasscodeProof::RecoveryCode(other.recovery_codes[0]);
    let login = world.complete_login(&other, world.network(), login);
    assert_eq!(world.conclude(login).await, AttemptOutcome::Completed);

    // Nothing has expired yet.
    delete_all_expired(&world).await;
    assert!(is_replayed(&world, &principal).await);
    assert_eq!(world.versions(&principal, replaced).await.others.len(), 1);

    // Sessions have expired; one created in between is still valid.
    world.clock.advance_seconds(SESSION_SECONDS - 1);
    let living = Principal::Session(world.log_in_from(&holder, home).await);
    delete_all_expired(&world).await;
    assert_eq!(world.listed(&dying).await.len(), MANY + 1);
    assert_eq!(world.versions(&principal, replaced).await.others, []);
    assert_eq!(world.activations(&activator).await.len(), 2);
    world.clock.advance_seconds(1);
    let deleted = delete_all_expired(&world).await;
    assert!(deleted[&Expired::Sessions] > MANY, "{deleted:?}");
    assert!(deleted[&Expired::PendingSeeds] > 0, "it waited for an hour: {deleted:?}");
    assert_eq!(world.listed(&living).await.len(), MANY + 1);
    assert!(is_replayed(&world, &principal).await);
    assert!(deleted[&Expired::Activations] > 0, "{deleted:?}");
    assert_eq!(world.activations(&activator).await.len(), 1);

    // Idempotency keys have expired.
    world.clock.advance_seconds(IDEMPOTENCY_SECONDS - SESSION_SECONDS - 1);
    delete_all_expired(&world).await;
    assert!(is_replayed(&world, &principal).await);
    world.clock.advance_seconds(2);
    let deleted = delete_all_expired(&world).await;
    assert!(deleted[&Expired::IdempotencyKeys] >= MANY, "{deleted:?}");
    assert!(!is_replayed(&world, &principal).await);

    // The invitation has expired; its address is free.
    let invited = by_address(&invitation.grant.email);
    world.clock.set(LONG_AGO.plus_seconds(INVITATION_SECONDS - 1));
    delete_all_expired(&world).await;
    assert!(world.open(&invitation).await.is_some());
    world.clock.advance_seconds(1);
    let deleted = delete_all_expired(&world).await;
    assert!(deleted[&Expired::Invitations] > 0, "{deleted:?}");
    assert_eq!(world.find(Principal::Operator, invited).await, None);

    // Notices are kept for as long as networks are known.
    world.clock.set(LONG_AGO.plus_seconds(NOTICE_SECONDS - 1));
    delete_all_expired(&world).await;
    assert_eq!(world.notices(&world.log_in(&other).await).await.len(), 1);
    world.clock.advance_seconds(1);
    let deleted = delete_all_expired(&world).await;
    assert!(deleted[&Expired::Notices] > 0, "{deleted:?}");
    assert_eq!(world.notices(&world.log_in(&other).await).await, []);

    // The network has been known for its full period: 90 days after its latest login, 1 s before the hour ended.
    world.clock.set(LONG_AGO.plus_seconds(SESSION_SECONDS - 1 + NETWORK_KNOWN_SECONDS));
    delete_all_expired(&world).await;
    exhaust_others(&world, &holder).await;
    assert!(matches!(world.reserve(&holder, home).await, Reservation::Account(_)));
    world.clock.advance_seconds(1);
    let deleted = delete_all_expired(&world).await;
    assert!(deleted[&Expired::Attempts] > 0, "{deleted:?}");
    assert!(matches!(world.reserve(&holder, home).await, Reservation::Throttled { .. }), "others still wait");

    assert_eq!(world.listed(&principal).await.len(), MANY + 2);
    assert_eq!(world.read(&holder).await.account, holder.account);
    assert!(world.audit_length().await > entries, "the audit is not deleted");
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, MANY + 2);
}

/// The health checks of the store succeed.
pub async fn store_responds_to_check(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.operate(&Principal::Operator, ProveSpace).await.unwrap();
    world.operate(&Principal::Operator, CheckStore).await.unwrap();
}

/// Number of deleted rows of each kind.
type Swept = HashMap<Expired, usize>;

/// Deletes expired rows until none remain. No call deletes more than a slice, and a call that deletes less leaves none.
async fn delete_all_expired(world: &World<'_>) -> Swept {
    let mut all = Swept::new();
    for expired in Expired::ALL {
        loop {
            let deleted = world.delete_expired(expired).await;
            assert!(deleted <= EXPIRED_SLICE, "{expired:?}: {deleted}");
            *all.entry(expired).or_default() += deleted;
            if deleted < EXPIRED_SLICE {
                assert_eq!(world.delete_expired(expired).await, 0, "{expired:?} were left");
                break;
            }
        }
    }
    all
}

/// Starts an activation that expires with the first sessions, and one that expires later.
async fn activate_twice(world: &World<'_>) -> IntegrationPrincipal {
    let activator = world.activator(&world.integration().await);
    for seconds in [SESSION_SECONDS, 2 * SESSION_SECONDS] {
        let mut command = world.take(&activator, "contract");
        // Large enough for the credentials that the case has saved.
        command.payload.most = 2 * MANY;
        if let Some(activation) = &mut command.payload.activation {
            activation.expires_at = world.now().plus_seconds(seconds);
        }
        world.taken(command).await;
    }
    activator
}

/// Credentials are counted by the result of their last check and by their expiry, each once, slice by slice.
pub async fn credentials_are_counted_in_slices(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let bounds = ExpiryBounds::new(world.now());
    let [now, day, _, soon, month] = *bounds.moments();
    let after = |moment: Timestamp| Some(Timestamp::from_millis(moment.as_millis() + 1));
    let expiries = [None, Some(now), after(now), Some(day), after(soon), Some(month), after(month)];
    for expires_at in expiries {
        let command = with(world.save(&principal), |save| save.expires_at = expires_at);
        world.store.save_credential(command).await.unwrap();
    }
    let [succeeds, fails, ..] = world.listed(&principal).await[..] else { panic!("seven were saved") };
    for (id, failed) in [(succeeds, None), (fails, Some(CheckReason::UnknownKey))] {
        let check = LastCheck { at: now, since: now, failed };
        let key = VersionKey { organization: world.organization, id, version: 1 };
        let record = RecordCheck { key, check, changed: Some(AuditAction::CredentialFailing) };
        assert!(world.operate(&Principal::Operator, record).await.unwrap());
    }
    // Other cases may have organizations that sort after this one.
    let before = Some((world.organization, CredentialId::from_bytes([0; 16])));
    let mut place = before;
    for limit in [3, 4] {
        let query = CountCredentials { bounds, after: place, limit };
        let CountedSlice { groups, last } = world.operate(&Principal::Operator, query).await.unwrap();
        assert_eq!(groups.iter().map(|group| group.credentials).sum::<u64>(), limit as u64);
        assert!(last > place, "{last:?}");
        place = last;
    }
    assert_eq!(place, Some((world.organization, succeeds)), "the newest one has the highest id");
    let query = CountCredentials { bounds, after: before, limit: expiries.len() };
    let mut counted = world.operate(&Principal::Operator, query).await.unwrap();
    counted.groups.sort_by_key(|group| (group.bounds_before, group.checked != Checked::Never));
    let group = |bounds_before, checked, credentials| CountedCredentials { checked, bounds_before, credentials };
    let expected = [
        group(0, Checked::Never, 1),
        group(1, Checked::Never, 2),
        group(4, Checked::Never, 1),
        group(4, Checked::Failed, 1),
        group(5, Checked::Never, 1),
        group(5, Checked::Succeeded, 1),
    ];
    assert_eq!(counted, CountedSlice { groups: expected.to_vec(), last: place });

    let last = (OrganizationId::from_bytes([0xff; 16]), CredentialId::from_bytes([0xff; 16]));
    let nothing = CountCredentials { bounds, after: Some(last), limit: 3 };
    assert_eq!(world.operate(&Principal::Operator, nothing).await.unwrap(), CountedSlice::default());
}

/// The use count of the most used active key is returned. Keys that only decrypt do not count.
pub async fn most_used_active_key_is_found(suite: &dyn ContractStore) {
    /// More than any other case uses.
    const MANY_USES: i64 = 1 << 27;
    let world = World::new(suite).await;
    assert!(world.operate(&Principal::Operator, ReadMostKeyUses).await.unwrap() < MANY_USES);
    let (organization, key) = (world.organization, world.keys().await.active.id);
    let count = CountKeyUses { organization, key, uses: MANY_USES, replaced_at: MANY_USES + 1 };
    world.operate(&Principal::Operator, count).await.unwrap();
    assert_eq!(world.operate(&Principal::Operator, ReadMostKeyUses).await.unwrap(), MANY_USES);
    world.replace_key().await;
    assert!(world.operate(&Principal::Operator, ReadMostKeyUses).await.unwrap() < MANY_USES);
}

/// Returns whether a repeated request gets the response of the original.
async fn is_replayed(world: &World<'_>, principal: &Principal) -> bool {
    let again = keyed(world, principal, "key 0", "body");
    let id = again.payload.id;
    world.store.save_credential(again).await.unwrap() != id
}

async fn exhaust_others(world: &World<'_>, holder: &super::world::Holder) {
    for _ in 0..FREE_ATTEMPTS {
        assert!(matches!(world.reserve(holder, world.network()).await, Reservation::Account(_)));
    }
}

/// Creates [`MANY`] sessions.
async fn log_in_often(world: &World<'_>) {
    let mut holders = Vec::new();
    for _ in 0..CONTENDERS {
        let holder = world.holder(Role::Viewer).await;
        let network = world.network();
        let logins: Vec<_> =
            (0..MANY / CONTENDERS).map(|_| world.complete_login(&holder, network, world.fresh_step())).collect();
        holders.push(logins);
    }
    race(holders.into_iter().map(|logins| {
        let logins: Vec<_> = logins.into_iter().map(|login| world.concluding(login)).collect();
        async move {
            for login in logins {
                assert_eq!(login.await, AttemptOutcome::Completed);
            }
        }
    }))
    .await;
}

/// Saves [`MANY`] credentials under idempotency keys.
async fn save_often(world: &World<'_>, principal: &Principal) {
    let saves: Vec<Vec<_>> = (0..CONTENDERS)
        .map(|contender| {
            let count = MANY / CONTENDERS;
            let keys = contender * count..(contender + 1) * count;
            keys.map(|key| keyed(world, principal, &format!("key {key}"), "body")).collect()
        })
        .collect();
    race(saves.into_iter().map(|saves| {
        let store = Arc::clone(&world.store);
        async move {
            for save in saves {
                store.save_credential(save).await.unwrap();
            }
        }
    }))
    .await;
}

/// An account whose expired re-enrolment was deleted stays without secrets until a new re-enrolment.
pub async fn deleted_re_enrolment_revives_nothing(suite: &dyn ContractStore) {
    let world = World::at(suite, LONG_AGO).await;
    let holder = world.holder(Role::Viewer).await;
    let invitation = world.re_enrolling(&holder).await;
    world.drafted(&invitation).await;
    let open = world.open(&invitation).await.unwrap();
    world.clock.advance_seconds(INVITATION_SECONDS);
    while world.delete_expired(Expired::Invitations).await == EXPIRED_SLICE {}
    assert!(!world.confirms(world.confirm_enrolment(&open, TimeStep::at(world.now()))).await);
    assert_eq!(world.read(&holder).await.account.secrets, None);
    assert!(matches!(world.reserve(&holder, world.network()).await, Reservation::Disabled(..)));
    let invitation = world.re_enrolling(&holder).await;
    world.re_enrolled(&invitation).await;
}
