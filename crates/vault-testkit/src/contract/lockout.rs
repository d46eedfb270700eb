//! Cases of [`ReserveAttempt`]: which attempts are permitted when.

use super::ContractStore;
use super::tools::{address, is_unknown_account, race};
use super::world::{Holder, World};
use vault_core::account::{AccountChange, AccountState};
use vault_core::audit::{Actor, AuditAction};
use vault_core::digest::Digest;
use vault_core::lockout::{
    CLOSING_ATTEMPTS, FIRST_WAIT_SECONDS, FREE_ATTEMPTS, KNOWN_NETWORKS, LONGEST_WAIT_SECONDS, NETWORK_KNOWN_SECONDS,
};
use vault_core::login::{FinishAttempt, NetworkIsKnown, Reservation, ReserveAttempt, VerifiedFactors};
use vault_core::organization::OrganizationState;
use vault_core::port::IdGenerator;
use vault_core::principal::Principal;
use vault_core::role::Role;

/// A reservation returns the stored values on which the login is decided. Attempts on disabled accounts are not
/// counted.
pub async fn reservation_contains_login_facts(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let Reservation::Account(reserved) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
    assert_eq!(reserved.account, holder.account);
    assert_eq!(reserved.secrets.as_ref(), Some(&holder.secrets));

    let disabled = super::account_change::regrant(Role::Viewer, AccountState::Disabled);
    world.change(&holder, disabled).await;
    let is_disabled = async || {
        let reservation = world.reserve(&holder, world.network()).await;
        matches!(reservation, Reservation::Disabled(_, account) if account == holder.account.grant.account)
    };
    assert!(is_disabled().await);
    let enabled = super::account_change::regrant(Role::Viewer, AccountState::Active);
    world.change(&holder, enabled).await;
    world.set_state(OrganizationState::Disabled).await;
    for _ in 0..2 * FREE_ATTEMPTS {
        assert!(is_disabled().await);
    }
    world.set_state(OrganizationState::Active).await;
    let Reservation::Account(reserved) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
    assert_eq!(reserved.attempts, 2);
}

/// Five attempts are free. Each further one requires a wait, which doubles each time. A reservation counts as an
/// attempt. Rejected attempts are not counted.
pub async fn lockout_doubles_after_five_attempts(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let network = world.network();
    for _ in 0..FREE_ATTEMPTS {
        assert!(is_counted(&world, &holder, network).await);
    }
    let mut wait = FIRST_WAIT_SECONDS;
    for _ in 0..7 {
        for _ in 0..3 {
            let reservation = world.reserve(&holder, network).await;
            let account = holder.account.grant.account;
            assert!(matches!(reservation, Reservation::Throttled(_, named) if named == account));
        }
        world.clock.advance_millis(wait * 1000 - 1);
        assert!(!is_counted(&world, &holder, network).await, "{wait} s are not over");
        world.clock.advance_millis(1);
        assert!(is_counted(&world, &holder, network).await, "{wait} s have elapsed");
        wait = (wait * 2).min(LONGEST_WAIT_SECONDS);
    }
}

/// Moving the clock back does not end a lockout.
pub async fn clock_moved_back_ends_no_lockout(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    exhaust(&world, &holder, world.network()).await;
    world.clock.advance_seconds(-7_200);
    assert!(!is_counted(&world, &holder, world.network()).await);
}

/// If fifty attempts run concurrently, exactly five are evaluated.
pub async fn parallel_attempts_gain_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let attempts = (0..50).map(|_| world.attempt(&holder.account.grant.email, world.network())).collect();
    let reservations = race_attempts(&world, attempts).await;
    assert_eq!(count(&reservations, |reservation| matches!(reservation, Reservation::Account(_))), 5);
    assert_eq!(count(&reservations, |reservation| matches!(reservation, Reservation::Throttled(..))), 45);
}

/// Attempts on an unknown address are never delayed or locked out, however many there are, also under concurrency.
pub async fn unknown_addresses_are_never_locked_out(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let attempt = unknown(&world);
    for _ in 0..CLOSING_ATTEMPTS {
        assert!(is_unknown_account(&world.reserve_attempt(attempt.clone()).await));
        let presented = VerifiedFactors::WrongPassword { recovery_code: None };
        let (network, actor) = (attempt.network, Actor::Unknown);
        let refused = FinishAttempt { reserved: None, attempts: 0, presented, network, actor };
        world.operate(&Principal::Operator, refused).await.unwrap();
    }
    let reservations = race_attempts(&world, vec![attempt.clone(); 50]).await;
    assert_eq!(count(&reservations, is_unknown_account), 50);
    assert_eq!(world.audited(AuditAction::LoginRefused).await, 0, "attempts on no account are not recorded here");
}

/// A network counts as known to all accounts for exactly 90 days after any account has logged in from it.
pub async fn known_networks_are_shared_by_processes(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await);
    let home = world.network();
    let is_known = async |network| world.operate(&Principal::Operator, NetworkIsKnown(network)).await.unwrap();
    assert!(!is_known(home).await);
    assert!(is_counted(&world, &holder, home).await);
    assert!(!is_known(home).await, "an attempt makes nothing known");
    world.log_in_from(&holder, home).await;
    assert!(is_known(home).await);
    world.clock.advance_seconds(NETWORK_KNOWN_SECONDS / 2);
    world.log_in_from(&colleague, home).await;
    world.clock.advance_seconds(NETWORK_KNOWN_SECONDS - 24 * 3600);
    assert!(is_known(home).await);
    world.clock.advance_seconds(24 * 3600 + 1);
    assert!(!is_known(home).await);
}

/// An attempt on an account that is deleted concurrently is treated as one on an unknown address, not as damage.
pub async fn account_deleted_during_attempts_is_unknown(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for _ in 0..8 {
        let holder = world.holder(Role::Viewer).await;
        let deletion = world.change_account(&holder, AccountChange::Delete);
        let attempts: Vec<_> = (0..4).map(|_| world.attempt(&holder.account.grant.email, world.network())).collect();
        let contenders = attempts.into_iter().map(Some).chain([None]).map(|attempt| {
            let deletion = world.running_by(deletion.clone());
            let reserving = attempt.map(|attempt| world.running(&world.store, Principal::Operator, attempt));
            async move {
                match reserving {
                    Some(reserving) => reserving.await.map(drop),
                    None => deletion.await.map(drop),
                }
            }
        });
        for outcome in race(contenders).await {
            outcome.unwrap();
        }
        assert!(is_unknown_account(&world.reserve(&holder, world.network()).await));
    }
}

/// Each network from which a login came has a separate throttle bucket; all other networks share one.
pub async fn known_networks_have_separate_buckets(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (home, office) = (world.network(), world.network());
    world.log_in_from(&holder, home).await;
    world.log_in_from(&holder, office).await;

    for _ in 0..FREE_ATTEMPTS {
        assert!(is_counted(&world, &holder, world.network()).await, "each of the others is a network of its own");
    }
    assert!(!is_counted(&world, &holder, world.network()).await);
    exhaust(&world, &holder, home).await;
    assert!(!is_counted(&world, &holder, home).await);
    assert!(is_counted(&world, &holder, office).await);
}

/// A network that is known for one account is not known for another.
pub async fn known_networks_are_per_account(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await);
    let network = world.network();
    world.log_in_from(&colleague, network).await;
    exhaust(&world, &holder, world.network()).await;
    assert!(!is_counted(&world, &holder, network).await);
    assert!(is_counted(&world, &colleague, network).await);
}

/// A throttle bucket is locked after a hundred attempts, over any time; a login from a known network unlocks the shared
/// one.
pub async fn hundred_attempts_lock_bucket(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (home, strange) = (world.network(), world.network());
    world.log_in_from(&holder, home).await;
    close(&world, &holder, strange).await;

    world.clock.advance_seconds(NETWORK_KNOWN_SECONDS / 2);
    assert!(!is_counted(&world, &holder, strange).await);
    assert!(!is_counted(&world, &holder, world.network()).await);
    assert!(is_counted(&world, &holder, home).await);
    world.log_in_from(&holder, home).await;
    assert!(is_counted(&world, &holder, strange).await);
}

/// Only unlocking ends the lockout of a known network's throttle bucket.
pub async fn unlocking_resets_lockouts_and_locked_buckets(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (home, office) = (world.network(), world.network());
    world.log_in_from(&holder, home).await;
    world.log_in_from(&holder, office).await;
    close(&world, &holder, home).await;
    exhaust(&world, &holder, world.network()).await;
    world.log_in_from(&holder, office).await;
    assert!(!is_counted(&world, &holder, home).await, "a login from elsewhere opens no known network");

    world.change(&holder, AccountChange::Unlock).await;
    for network in [home, office, world.network()] {
        assert!(is_counted(&world, &holder, network).await);
    }
}

/// A reservation returns the number of attempts that its throttle bucket has counted, up to a hundred. It creates no
/// notice: whether the bucket stays locked is known only when the attempt is concluded.
pub async fn reservation_returns_attempt_count(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (home, strange) = (world.network(), world.network());
    world.log_in_from(&holder, home).await;
    for network in [strange, home] {
        for attempt in 1..=CLOSING_ATTEMPTS {
            world.clock.advance_seconds(LONGEST_WAIT_SECONDS);
            let Reservation::Account(reserved) = world.reserve(&holder, network).await else { panic!("{attempt}") };
            assert_eq!(reserved.attempts, attempt);
        }
        world.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        assert!(!is_counted(&world, &holder, network).await);
    }
    let session = world.log_in(&holder).await;
    assert_eq!(world.notices(&session).await, []);
}

/// A login resets the throttle bucket of its attempt. If that belongs to a known network, a shared bucket that is not
/// locked keeps its wait.
pub async fn login_resets_only_its_bucket(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (home, strange) = (world.network(), world.network());

    exhaust(&world, &holder, strange).await;
    world.log_in_from(&holder, home).await;
    // The login used the shared bucket and created one for its network.
    exhaust(&world, &holder, strange).await;
    exhaust(&world, &holder, home).await;
    assert!(!is_counted(&world, &holder, home).await);

    world.log_in_from(&holder, home).await;
    assert!(is_counted(&world, &holder, home).await);
    assert!(!is_counted(&world, &holder, strange).await);
}

/// A network is known for 90 days after its latest login, and then uses the shared bucket.
pub async fn known_network_expires_after_90_days(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let home = world.network();
    world.log_in_from(&holder, home).await;
    world.clock.advance_seconds(NETWORK_KNOWN_SECONDS);
    exhaust(&world, &holder, world.network()).await;
    assert!(is_counted(&world, &holder, home).await);
    world.clock.advance_millis(1);
    assert!(!is_counted(&world, &holder, home).await, "now it waits with the others");

    world.clock.advance_seconds(FIRST_WAIT_SECONDS);
    world.log_in_from(&holder, home).await;
    exhaust(&world, &holder, world.network()).await;
    assert!(is_counted(&world, &holder, home).await, "known again");
}

/// At most eight networks are known; the ninth replaces the one that has been unused for longest.
pub async fn ninth_network_replaces_least_recently_used(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let networks: Vec<_> = (0..=KNOWN_NETWORKS).map(|_| world.network()).collect();
    let (ninth, eight) = networks.split_last().unwrap();
    for network in eight.iter().chain([&eight[0], ninth]) {
        world.clock.advance_seconds(1);
        world.log_in_from(&holder, *network).await;
    }
    exhaust(&world, &holder, world.network()).await;
    for (index, network) in networks.iter().enumerate() {
        assert_eq!(is_counted(&world, &holder, *network).await, index != 1, "network {index}");
    }
}

/// Five concurrent attempts from a known network are evaluated.
pub async fn parallel_attempts_from_known_network_gain_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let home = world.network();
    world.log_in_from(&holder, home).await;
    let reservations = race_attempts(&world, vec![world.attempt(&holder.account.grant.email, home); 32]).await;
    assert_eq!(count(&reservations, |reservation| matches!(reservation, Reservation::Account(_))), 5);
}

async fn is_counted(world: &World<'_>, holder: &Holder, network: Digest) -> bool {
    matches!(world.reserve(holder, network).await, Reservation::Account(_))
}

/// Uses all free attempts of the network's throttle bucket.
async fn exhaust(world: &World<'_>, holder: &Holder, network: Digest) {
    for _ in 0..FREE_ATTEMPTS {
        assert!(is_counted(world, holder, network).await);
    }
}

/// Uses all attempts of the network's throttle bucket, each after the longest wait.
async fn close(world: &World<'_>, holder: &Holder, network: Digest) {
    for _ in 0..CLOSING_ATTEMPTS {
        world.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        assert!(is_counted(world, holder, network).await);
    }
}

/// Returns an attempt on an unknown address.
fn unknown(world: &World<'_>) -> ReserveAttempt {
    let nonexistent = address(&format!("{}@nowhere.example", world.ids.random()));
    world.attempt(&nonexistent, world.network())
}

async fn race_attempts(world: &World<'_>, attempts: Vec<ReserveAttempt>) -> Vec<Reservation> {
    race(attempts.into_iter().map(|attempt| {
        let reserving = world.running(&world.store, Principal::Operator, attempt);
        async move { reserving.await.unwrap() }
    }))
    .await
}

fn count(reservations: &[Reservation], which: impl Fn(&Reservation) -> bool) -> usize {
    reservations.iter().filter(|reservation| which(reservation)).count()
}
