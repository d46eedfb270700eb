//! Activations on PostgreSQL, where transactions of several servers lock the same rows. None may end in a deadlock,
//! which PostgreSQL counts.

use crate::support;
use vault_testkit::commands::CredentialCommands as _;

use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::NOW;
use support::activators::activated;
use support::postgres::{client, patient_store, query, wait_for_waiting};
use support::world::World;
use tokio::task::JoinSet;
use vault_core::activation::{FetchCredentials, ForIntegration};
use vault_core::integration::{FoundIntegration, IntegrationRefusal};
use vault_core::maintenance::{DeleteExpired, Expired};
use vault_core::organization::{DeleteOrganization, OrganizationState, SetOrganizationState};
use vault_core::principal::{Denial, Principal};
use vault_core::role::Role;
use vault_core::{Command, Error, Refusal};
use vault_diesel::PostgresStore;
use vault_testkit::postgres::Cluster;

const ROUNDS: u64 = 24;

/// Starts two servers that wait for locks without a time limit.
async fn servers() -> (String, Arc<PostgresStore>, Arc<PostgresStore>) {
    let address = Cluster::shared().create_database();
    let name = address.rsplit('/').next().unwrap();
    query(&address, &format!("ALTER DATABASE {name} SET deadlock_timeout = '50ms'"));
    let (here, there) = (patient_store(&address).await, patient_store(&address).await);
    here.migrate(NOW, &mut |_| {}).await.unwrap();
    (address, here, there)
}

/// Everything that locks rows of an integration runs concurrently.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn activations_changes_and_freezes_do_not_deadlock() {
    let (address, here, there) = servers().await;
    for round in 0..ROUNDS {
        let world = &World::make(&here, round + 1).await;
        let admin = &Principal::Session(world.member(&here, Role::Admin).await);
        world.save_activated(&here).await;
        let found = world.integration(&here).await;
        let principal = &world.activator(&found);
        let live = world.take(principal);
        let live_id = live.payload.activation.as_ref().unwrap().id;
        here.fetch_credentials(live).await.unwrap();

        let mut operations: Vec<BoxFuture<'_, bool>> = Vec::new();
        for server in [&here, &there] {
            for _ in 0..3 {
                let (begin, dry) = (world.take(principal), dry(world.take(principal)));
                for take in [begin, dry] {
                    operations.push(async move { decided(server.fetch_credentials(take.clone()).await) }.boxed());
                }
            }
            for authority in [&Principal::Operator, admin] {
                let create = world.new_integration();
                let create = async move {
                    world.operate(server, authority, create).await.unwrap();
                    false
                };
                operations.push(create.boxed());
            }
            for (authority, frozen) in [(&Principal::Operator, true), (admin, false), (admin, true)] {
                let freeze = async move {
                    world.set_frozen(server, authority, frozen).await;
                    false
                };
                operations.push(freeze.boxed());
            }
            let end = world.end(principal, live_id);
            operations.push(async move { decided(server.end_activation(end.clone()).await) }.boxed());
            let (authority, rotation) =
                (if round % 2 == 0 { admin } else { &Principal::Operator }, world.rotate(&found));
            let rotate = async move { world.operate(server, authority, rotation).await.is_ok() };
            operations.push(rotate.boxed());
            let expire = world.running(server, Principal::Operator, DeleteExpired(Expired::Activations));
            operations.push(async move { decided(expire.await) }.boxed());
        }
        let rotated = join_all(operations).await.into_iter().filter(|rotated| *rotated).count();
        assert_eq!(rotated, 2);
    }
    assert_eq!(deadlocks(&address, [here, there]).await, 0);
}

/// Issuances and replacements of the same credentials, which two servers collect in different orders.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn issuances_and_replacements_do_not_deadlock() {
    let (address, here, there) = servers().await;
    for round in 0..ROUNDS {
        let world = &World::make(&here, round + 1).await;
        let mut saved = Vec::new();
        for _ in 0..6 {
            saved.push(world.save_activated(&here).await);
        }
        let principals = [world.integration(&here).await, world.integration(&here).await];
        let principals = &principals.map(|found| world.activator(&found));
        let mut operations: Vec<BoxFuture<'_, bool>> = Vec::new();
        for (server, backwards) in [(&here, false), (&there, true)] {
            if backwards {
                saved.reverse();
            }
            for (principal, id) in principals.iter().zip(&saved).chain(principals.iter().zip(saved.iter().rev())) {
                let begin = world.take(principal);
                let activation = begin.payload.activation.as_ref().unwrap().id;
                here.fetch_credentials(begin).await.unwrap();
                let command = world.issue_credentials(principal, activation, &[*id, saved[3]]);
                operations.push(async move { decided(server.issue_credentials(command.clone()).await) }.boxed());
            }
            for id in &saved {
                operations.push(world.by_account(server, world.replace(*id, 1)).map(decided).boxed());
            }
            let id = saved[2];
            operations.push(async move { decided(world.delete(server, id).await) }.boxed());
        }
        join_all(operations).await;
    }
    assert_eq!(deadlocks(&address, [here, there]).await, 0);
}

/// Returns the number of deadlocks of the stores. Their connections close with them, and PostgreSQL then has counted
/// their deadlocks.
async fn deadlocks(address: &str, stores: [Arc<PostgresStore>; 2]) -> i64 {
    drop(stores);
    let observer = client(address).await;
    let ask = async |sql| observer.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    while ask(others).await > 0 {
        tokio::task::yield_now().await;
    }
    ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await
}

/// Checks that the store did not fail. A refusal is a valid outcome. Returns `false`.
fn decided<T>(outcome: Result<T, Error>) -> bool {
    assert!(matches!(outcome, Ok(_) | Err(Error::Denied(_) | Error::Refused(_))), "{:?}", outcome.err());
    false
}

/// A change that stops activations.
#[derive(Clone, Copy, Debug)]
enum Revocation {
    Freeze,
    Rotation,
    Deletion,
    OrganizationDisabled,
    OrganizationDeleted,
}

impl Revocation {
    async fn carry_out(self, store: &Arc<PostgresStore>, world: &World, found: &FoundIntegration) {
        let (operator, organization) = (Principal::Operator, world.organization);
        match self {
            Self::Freeze => {
                assert!(world.set_frozen(store, &operator, true).await);
            }
            Self::Rotation => drop(world.operate(store, &operator, world.rotate(found)).await.unwrap()),
            Self::Deletion => world.operate(store, &operator, world.delete_integration(found)).await.unwrap(),
            Self::OrganizationDisabled => {
                let disable = SetOrganizationState { organization, state: OrganizationState::Disabled };
                world.operate(store, &Principal::Operator, disable).await.unwrap();
            }
            Self::OrganizationDeleted => {
                world.operate(store, &Principal::Operator, DeleteOrganization(organization)).await.unwrap();
            }
        }
    }

    /// Returns the error that the integration gets afterwards.
    const fn refusal(self) -> Result<Refusal, IntegrationRefusal> {
        match self {
            Self::Freeze => Ok(Refusal::Frozen),
            Self::Rotation => Err(IntegrationRefusal::Changed),
            Self::Deletion => Err(IntegrationRefusal::Unknown),
            Self::OrganizationDisabled | Self::OrganizationDeleted => Err(IntegrationRefusal::OrganizationDisabled),
        }
    }

    async fn is_reported(self, store: &Arc<PostgresStore>, command: ForIntegration<FetchCredentials>) {
        let reported = match store.fetch_credentials(command).await {
            Err(Error::Refused(refusal)) => Ok(refusal),
            Err(Error::Denied(Denial::Integration(refusal))) => Err(refusal),
            other => panic!("{other:?} of {}", activated()),
        };
        assert_eq!(reported, self.refusal());
    }
}

fn dry(command: ForIntegration<FetchCredentials>) -> ForIntegration<FetchCredentials> {
    let payload = FetchCredentials { activation: None, ..command.payload };
    Command { payload, ..command }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn revocation_waits_for_activations_in_flight() {
    use Revocation::{Deletion, Freeze, OrganizationDeleted, OrganizationDisabled, Rotation};
    let (address, here, there) = servers().await;
    let (blocker, observer) = (client(&address).await, client(&address).await);
    for (revocation, is_dry) in [Freeze, Rotation, Deletion, OrganizationDisabled, OrganizationDeleted]
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        let world = Arc::new(World::make(&here, ROUNDS + 1 + revocation as u64 * 2 + u64::from(is_dry)).await);
        world.save_activated(&here).await;
        let found = world.integration(&here).await;
        let principal = world.activator(&found);
        let command = || if is_dry { dry(world.take(&principal)) } else { world.take(&principal) };
        // Delays the activation between its authorization and its commit.
        blocker.batch_execute("BEGIN; LOCK TABLE audit IN SHARE MODE").await.unwrap();
        let take = tokio::spawn({
            let (here, command) = (Arc::clone(&here), command());
            async move { here.fetch_credentials(command).await.unwrap() }
        });
        wait_for_waiting(&observer, 1, || take.is_finished()).await;
        let revoked = tokio::spawn({
            let (there, world, address, found) =
                (Arc::clone(&there), Arc::clone(&world), address.clone(), found.clone());
            async move {
                revocation.carry_out(&there, &world, &found).await;
                let taken = format!(
                    "SELECT count(*) FROM audit WHERE organization_id = '{}' AND action = 'activation.started'",
                    world.organization
                );
                query(&address, &taken)
            }
        });
        wait_for_waiting(&observer, 2, || revoked.is_finished()).await;
        blocker.batch_execute("COMMIT").await.unwrap();
        assert_eq!(revoked.await.unwrap(), "1", "{revocation:?} was acknowledged before an activation that then stood");
        assert_eq!(take.await.unwrap().len(), 1);
        revocation.is_reported(&here, command()).await;
    }
}

/// An authorized issuance is committed before any revocation is acknowledged, including the deletion of its credential.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn revocation_waits_for_issuances_in_flight() {
    use Revocation::{Deletion, Freeze, OrganizationDeleted, OrganizationDisabled, Rotation};
    let (address, here, there) = servers().await;
    let (blocker, observer) = (client(&address).await, client(&address).await);
    let all = [Freeze, Rotation, Deletion, OrganizationDisabled, OrganizationDeleted].map(Some);
    for (number, revocation) in all.into_iter().chain([None]).enumerate() {
        let world = Arc::new(World::make(&here, ROUNDS + 100 + number as u64).await);
        let saved = world.save_activated(&here).await;
        let found = world.integration(&here).await;
        let principal = world.activator(&found);
        let begin = world.take(&principal);
        let id = begin.payload.activation.as_ref().unwrap().id;
        here.fetch_credentials(begin).await.unwrap();
        // Delays the issuance between its authorization and its commit.
        blocker.batch_execute("BEGIN; LOCK TABLE audit IN SHARE MODE").await.unwrap();
        let issue_credentials = tokio::spawn({
            let (here, command) = (Arc::clone(&here), world.issue_credentials(&principal, id, &[saved]));
            async move { here.issue_credentials(command).await.unwrap() }
        });
        wait_for_waiting(&observer, 1, || issue_credentials.is_finished()).await;
        let revoked = tokio::spawn({
            let (there, world, address, found) =
                (Arc::clone(&there), Arc::clone(&world), address.clone(), found.clone());
            async move {
                match revocation {
                    Some(revocation) => revocation.carry_out(&there, &world, &found).await,
                    None => world.delete(&there, saved).await.unwrap(),
                }
                let stands = format!(
                    "SELECT count(*) FROM audit WHERE organization_id = '{}' AND action = 'namespace.activated'",
                    world.organization
                );
                query(&address, &stands)
            }
        });
        wait_for_waiting(&observer, 2, || revoked.is_finished()).await;
        blocker.batch_execute("COMMIT").await.unwrap();
        assert_eq!(
            revoked.await.unwrap(),
            "1",
            "{revocation:?} was acknowledged before an issuance that was then committed"
        );
        assert_eq!(issue_credentials.await.unwrap(), None);
        let after = here.issue_credentials(world.issue_credentials(&principal, id, &[saved])).await.unwrap();
        assert!(after.is_some(), "{revocation:?}");
    }
}

/// A revocation gets its lock, however many activations are running.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn revocation_is_not_starved_by_activations() {
    use Revocation::{Deletion, Freeze, OrganizationDeleted, OrganizationDisabled, Rotation};
    let (address, here, there) = servers().await;
    let concurrent = patient_store(&address).await;
    for revocation in [Freeze, Rotation, Deletion, OrganizationDisabled, OrganizationDeleted] {
        let world = Arc::new(World::make(&here, revocation as u64 + 1).await);
        world.save_activated(&here).await;
        let found = world.integration(&here).await;
        let (own, other) = (world.activator(&found), world.activator(&world.integration(&here).await));
        let (taken, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut load = JoinSet::new();
        for number in 0..16 {
            let store = Arc::clone(if number % 2 == 0 { &here } else { &there });
            let principal = if number % 4 < 2 { own.clone() } else { other.clone() };
            let (world, taken, stop) = (Arc::clone(&world), Arc::clone(&taken), Arc::clone(&stop));
            load.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let command = world.take(&principal);
                    let activation = command.payload.activation.as_ref().unwrap().id;
                    let command = if number < 8 { command } else { dry(command) };
                    decided(store.fetch_credentials(command).await);
                    // The activation may be active or missing. The second call finds it missing.
                    for _ in 0..2 {
                        decided(store.end_activation(world.end(&principal, activation)).await);
                    }
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while taken.load(Ordering::Relaxed) < 100 {
            tokio::task::yield_now().await;
        }
        revocation.carry_out(&concurrent, &world, &found).await;
        revocation.is_reported(&concurrent, world.take(&own)).await;
        stop.store(true, Ordering::Relaxed);
        while let Some(ended) = load.join_next().await {
            ended.unwrap();
        }
    }
}

/// An integration that is created concurrently with a freeze either exists before it and is stopped, or is created
/// after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_integration_is_created_during_a_freeze() {
    let (address, here, there) = servers().await;
    let (blocker, observer) = (client(&address).await, client(&address).await);
    let world = Arc::new(World::make(&here, 1).await);
    let admin = Principal::Session(world.member(&here, Role::Admin).await);
    for (number, (freezes, makes)) in
        [(&Principal::Operator, &admin), (&admin, &Principal::Operator), (&admin, &admin)].into_iter().enumerate()
    {
        blocker.batch_execute("BEGIN; LOCK TABLE lookups IN SHARE MODE").await.unwrap();
        let freeze = tokio::spawn({
            let (world, here, freezes) = (Arc::clone(&world), Arc::clone(&here), freezes.clone());
            async move { world.set_frozen(&here, &freezes, number % 2 == 0).await }
        });
        wait_for_waiting(&observer, 1, || freeze.is_finished()).await;
        let make = tokio::spawn({
            let (world, there, makes) = (Arc::clone(&world), Arc::clone(&there), makes.clone());
            async move { world.operate(&there, &makes, world.new_integration()).await.unwrap() }
        });
        wait_for_waiting(&observer, 2, || make.is_finished()).await;
        blocker.batch_execute("COMMIT").await.unwrap();
        assert!(freeze.await.unwrap());
        make.await.unwrap();
    }
}
