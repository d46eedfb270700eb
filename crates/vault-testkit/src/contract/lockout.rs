//! Cases of [`reserve_attempt`](vault_core::port::LoginGuard::reserve_attempt): how many attempts whom gets when.

use super::ContractStore;
use super::tools::{address, bucket, race};
use super::world::{Holder, World};
use std::sync::Arc;
use vault_core::account::AccountState;
use vault_core::digest::Digest;
use vault_core::lockout::{
    CLOSING_ATTEMPTS, FIRST_WAIT_SECONDS, FREE_ATTEMPTS, KNOWN_NETWORKS, LONGEST_WAIT_SECONDS, NETWORK_KNOWN_SECONDS,
};
use vault_core::notice::NoticeCode;
use vault_core::organization::OrganizationState;
use vault_core::port::{AccountChange, IdGenerator, Reservation, ReserveAttempt};
use vault_core::role::Role;

/// The facts that the login will be decided on are those of the rows, disabled ones included.
pub async fn a_reservation_carries_the_facts(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let Reservation::Account(reserved) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
    assert_eq!((&reserved.grant, reserved.grant_digest), (&holder.grant, holder.grant_digest));
    assert_eq!(reserved.organization_state, OrganizationState::Active);
    assert_eq!((&reserved.password, &reserved.seed), (&holder.password, &holder.seed));

    let disabled = super::account_change::regrant(&holder, Role::Viewer, AccountState::Disabled);
    world.change(&holder, disabled).await;
    world.set_state(OrganizationState::Disabled).await;
    let Reservation::Account(reserved) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
    assert_eq!(reserved.grant.state, AccountState::Disabled);
    assert_eq!(reserved.organization_state, OrganizationState::Disabled);
}

/// Five attempts are free; each further one comes after a wait that doubles. Nothing but reserving is needed to
/// count, and what is turned away is not counted.
pub async fn five_attempts_are_free_then_waits_double(suite: &dyn ContractStore) {
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
            let account = Some((world.organization, holder.grant.account));
            assert!(matches!(reservation, Reservation::TurnedAway { account: named } if named == account));
        }
        world.clock.advance_millis(wait * 1000 - 1);
        assert!(!is_counted(&world, &holder, network).await, "{wait} s are not over");
        world.clock.advance_millis(1);
        assert!(is_counted(&world, &holder, network).await, "{wait} s are over");
        wait = (wait * 2).min(LONGEST_WAIT_SECONDS);
    }
}

/// A clock that is set back ends no wait.
pub async fn a_clock_set_back_ends_no_wait(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    exhaust(&world, &holder, world.network()).await;
    world.clock.advance_seconds(-7_200);
    assert!(!is_counted(&world, &holder, world.network()).await);
}

/// Of fifty attempts at once, five are evaluated.
pub async fn parallel_attempts_win_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let attempts = (0..50).map(|_| world.attempt(holder.address, world.network())).collect();
    let reservations = race_attempts(&world, attempts).await;
    assert_eq!(count(&reservations, |reservation| matches!(reservation, Reservation::Account(_))), 5);
    assert_eq!(count(&reservations, |reservation| matches!(reservation, Reservation::TurnedAway { .. })), 45);
}

/// An unknown address gets as many attempts as a known one, and as long waits.
pub async fn unknown_addresses_wait_alike(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let attempt = unknown(&world, 0);
    let at = |seconds: i64| ReserveAttempt { now: attempt.now.plus_seconds(seconds), ..attempt };
    let reserve = async |command| world.store.reserve_attempt(command).await.unwrap();
    for _ in 0..FREE_ATTEMPTS {
        assert!(matches!(reserve(at(0)).await, Reservation::Unknown));
    }
    // Another address of the same bucket and another network change nothing.
    let neighbour = unknown(&world, 0);
    let neighbour = ReserveAttempt { bucket: attempt.bucket, ..neighbour };
    for turned_away in [at(0), neighbour, at(FIRST_WAIT_SECONDS - 1)] {
        assert!(matches!(reserve(turned_away).await, Reservation::TurnedAway { account: None }));
    }
    assert!(matches!(reserve(at(FIRST_WAIT_SECONDS)).await, Reservation::Unknown));
    assert!(matches!(reserve(at(3 * FIRST_WAIT_SECONDS - 1)).await, Reservation::TurnedAway { account: None }));
    assert!(matches!(reserve(at(3 * FIRST_WAIT_SECONDS)).await, Reservation::Unknown));
}

/// Of fifty attempts at once on an unknown address, five are evaluated.
pub async fn parallel_attempts_on_an_unknown_address_win_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let attempt = unknown(&world, 1);
    let reservations = race_attempts(&world, vec![attempt; 50]).await;
    assert_eq!(count(&reservations, |reservation| matches!(reservation, Reservation::Unknown)), 5);
    assert_eq!(count(&reservations, |reservation| matches!(reservation, Reservation::TurnedAway { .. })), 45);
}

/// The bucket counts for unknown addresses only.
pub async fn an_account_does_not_share_a_bucket(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let stranger = unknown(&world, 2);
    for _ in 0..FREE_ATTEMPTS {
        world.store.reserve_attempt(stranger).await.unwrap();
    }
    let attempt = ReserveAttempt { bucket: stranger.bucket, ..world.attempt(holder.address, world.network()) };
    assert!(matches!(world.store.reserve_attempt(attempt).await.unwrap(), Reservation::Account(_)));
}

/// Each network that a login came from counts for itself; all others count together.
pub async fn known_networks_are_classes_of_their_own(suite: &dyn ContractStore) {
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

/// A network that one account knows is like any other to the next.
pub async fn networks_are_known_per_account(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await);
    let network = world.network();
    world.log_in_from(&colleague, network).await;
    exhaust(&world, &holder, world.network()).await;
    assert!(!is_counted(&world, &holder, network).await);
    assert!(is_counted(&world, &colleague, network).await);
}

/// A class is closed after a hundred attempts, for however long; a login from a known network opens the shared one.
pub async fn a_hundred_attempts_close_a_class(suite: &dyn ContractStore) {
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

/// A known network's class that was closed is opened by unlocking alone.
pub async fn unlocking_lifts_waits_and_closed_classes(suite: &dyn ContractStore) {
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

/// A reservation says how many attempts its class has counted; with the hundredth, and only then, the owner gets a
/// notice.
pub async fn the_hundredth_attempt_leaves_a_notice(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (home, strange) = (world.network(), world.network());
    world.log_in_from(&holder, home).await;
    let mut closed_at = Vec::new();
    for network in [strange, home] {
        for attempt in 1..=CLOSING_ATTEMPTS {
            world.clock.advance_seconds(LONGEST_WAIT_SECONDS);
            if attempt == CLOSING_ATTEMPTS {
                closed_at.push((NoticeCode::AttemptsClosed, world.now().as_millis()));
            }
            let Reservation::Account(reserved) = world.reserve(&holder, network).await else { panic!("{attempt}") };
            assert_eq!(reserved.attempts, attempt);
        }
        world.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        assert!(!is_counted(&world, &holder, network).await);
    }
    let session = world.log_in(&holder).await;
    assert_eq!(world.notices(&session).await, closed_at);
}

/// The bucket of an unknown address is closed after a hundred attempts, too.
pub async fn a_hundred_attempts_close_a_bucket(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let attempt = unknown(&world, 3);
    let mut now = attempt.now;
    for _ in 0..CLOSING_ATTEMPTS {
        now = now.plus_seconds(LONGEST_WAIT_SECONDS);
        let reservation = world.store.reserve_attempt(ReserveAttempt { now, ..attempt }).await.unwrap();
        assert!(matches!(reservation, Reservation::Unknown));
    }
    let now = now.plus_seconds(NETWORK_KNOWN_SECONDS);
    let reservation = world.store.reserve_attempt(ReserveAttempt { now, ..attempt }).await.unwrap();
    assert!(matches!(reservation, Reservation::TurnedAway { account: None }));
}

/// A login resets the class that it came in by. Where that was a known network's, a shared class that is not
/// closed goes on waiting.
pub async fn a_login_resets_its_own_class(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (home, strange) = (world.network(), world.network());

    exhaust(&world, &holder, strange).await;
    world.log_in_from(&holder, home).await;
    // It came in by the shared class and made its network a class of its own.
    exhaust(&world, &holder, strange).await;
    exhaust(&world, &holder, home).await;
    assert!(!is_counted(&world, &holder, home).await);

    world.log_in_from(&holder, home).await;
    assert!(is_counted(&world, &holder, home).await);
    assert!(!is_counted(&world, &holder, strange).await);
}

/// A network is known for 90 days after its latest login, and then one of the others.
pub async fn a_network_is_forgotten_after_90_days(suite: &dyn ContractStore) {
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

/// Eight networks are known; the ninth takes the place of the one that is unused for longest.
pub async fn the_ninth_network_replaces_the_one_unused_for_longest(suite: &dyn ContractStore) {
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

/// Parallel attempts from a known network, too, get five.
pub async fn parallel_attempts_from_a_known_network_win_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let home = world.network();
    world.log_in_from(&holder, home).await;
    let reservations = race_attempts(&world, vec![world.attempt(holder.address, home); 32]).await;
    assert_eq!(count(&reservations, |reservation| matches!(reservation, Reservation::Account(_))), 5);
}

async fn is_counted(world: &World<'_>, holder: &Holder, network: Digest) -> bool {
    matches!(world.reserve(holder, network).await, Reservation::Account(_))
}

/// Uses all free attempts of the network's class.
async fn exhaust(world: &World<'_>, holder: &Holder, network: Digest) {
    for _ in 0..FREE_ATTEMPTS {
        assert!(is_counted(world, holder, network).await);
    }
}

/// Uses all attempts of the network's class, each after the longest wait.
async fn close(world: &World<'_>, holder: &Holder, network: Digest) {
    for _ in 0..CLOSING_ATTEMPTS {
        world.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        assert!(is_counted(world, holder, network).await);
    }
}

/// An attempt on an address that nobody has, in a bucket that no other case takes.
fn unknown(world: &World<'_>, case: u64) -> ReserveAttempt {
    let nobody = address(&format!("{}@nowhere.example", world.ids.random()));
    ReserveAttempt { bucket: bucket(case), ..world.attempt(nobody, world.network()) }
}

async fn race_attempts(world: &World<'_>, attempts: Vec<ReserveAttempt>) -> Vec<Reservation> {
    race(attempts.into_iter().map(|attempt| {
        let store = Arc::clone(&world.store);
        async move { store.reserve_attempt(attempt).await.unwrap() }
    }))
    .await
}

fn count(reservations: &[Reservation], which: impl Fn(&Reservation) -> bool) -> usize {
    reservations.iter().filter(|reservation| which(reservation)).count()
}
