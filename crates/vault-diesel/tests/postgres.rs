//! Behaviour of the store on PostgreSQL beyond the contract of the ports.

use crate::support;

use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;
use support::now;
use support::postgres::{client, database, patient_store, query, store, wait_for_waiting};
use support::world::World;
use tokio::task::JoinSet;
use vault_core::Error;
use vault_core::account::{AccountChange, ChangeAccount};
use vault_core::maintenance::CheckStore;
use vault_core::organization::{DeleteOrganization, OrganizationState, ReadOrganization, SetOrganizationState};
use vault_core::port::StoreError;
use vault_core::principal::{Denial, Principal};
use vault_diesel::{ConnectError, PostgresSettings, PostgresStore};
use vault_testkit::postgres::{Cluster, Options};

/// Returns a number for a world that no other test uses.
fn number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns the current time, which the server has too.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_save_succeeds_after_acknowledged_logout() {
    for _ in 0..16 {
        let (here, there) = (store(database()).await, store(database()).await);
        let world = Arc::new(World::make(&here, number()).await);
        let mut saves = JoinSet::new();
        for _ in 0..16 {
            let (here, world) = (Arc::clone(&here), Arc::clone(&world));
            saves.spawn(async move {
                let mut saved = 0;
                loop {
                    match world.saved(&here).await {
                        Ok(_) => saved += 1,
                        outcome => break (saved, outcome),
                    }
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
        world.log_out(&there).await;
        let sql = format!("SELECT count(*) FROM credentials WHERE organization_id = '{}'", world.organization);
        let at_logout: i64 = query(database(), &sql).parse().unwrap();
        let mut acknowledged = 0;
        while let Some(ended) = saves.join_next().await {
            let (saved, outcome) = ended.unwrap();
            assert!(matches!(outcome, Err(Error::Denied(Denial::SessionEnded))), "{outcome:?}");
            acknowledged += saved;
        }
        let afterwards: i64 = query(database(), &sql).parse().unwrap();
        assert_eq!((at_logout, acknowledged), (afterwards, afterwards));
    }
}

/// A change that revokes the right to save.
#[derive(Clone, Copy, Debug)]
enum Revocation {
    Logout,
    AccountDeleted,
    OrganizationDisabled,
    OrganizationDeleted,
}

impl Revocation {
    async fn carry_out(self, store: &Arc<PostgresStore>, world: &World) {
        let organization = world.organization;
        match self {
            Self::Logout => world.log_out(store).await,
            Self::AccountDeleted => {
                let deletion = ChangeAccount { organization, account: world.account, change: AccountChange::Delete };
                world.operate(store, &Principal::Operator, deletion).await.unwrap();
            }
            Self::OrganizationDisabled => {
                let disable = SetOrganizationState { organization, state: OrganizationState::Disabled };
                world.operate(store, &Principal::Operator, disable).await.unwrap();
            }
            Self::OrganizationDeleted => {
                world.operate(store, &Principal::Operator, DeleteOrganization(organization)).await.unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn revocation_waits_for_saves_in_flight() {
    use Revocation::{AccountDeleted, Logout, OrganizationDeleted, OrganizationDisabled};
    let address = Cluster::shared().create_database();
    let (here, there) = (patient_store(&address).await, patient_store(&address).await);
    here.migrate(now(), &mut |_| {}).await.unwrap();
    let (blocker, observer) = (client(&address).await, client(&address).await);
    for revocation in [Logout, AccountDeleted, OrganizationDisabled, OrganizationDeleted] {
        let world = Arc::new(World::make(&here, number()).await);
        // Delays the save between its authorization and its commit.
        blocker.batch_execute("BEGIN; LOCK TABLE credentials IN SHARE MODE").await.unwrap();
        let save = tokio::spawn({
            let (here, world) = (Arc::clone(&here), Arc::clone(&world));
            async move { world.saved(&here).await.unwrap() }
        });
        wait_for_waiting(&observer, 1, || save.is_finished()).await;
        let revoked = tokio::spawn({
            let (there, world, address) = (Arc::clone(&there), Arc::clone(&world), address.clone());
            async move {
                revocation.carry_out(&there, &world).await;
                let saved = format!(
                    "SELECT count(*) FROM audit WHERE organization_id = '{}' AND action = 'credential.saved'",
                    world.organization
                );
                query(&address, &saved)
            }
        });
        wait_for_waiting(&observer, 2, || revoked.is_finished()).await;
        blocker.batch_execute("COMMIT").await.unwrap();
        assert_eq!(revoked.await.unwrap(), "1", "{revocation:?} was acknowledged before a save that then stood");
        save.await.unwrap();
        assert!(matches!(world.saved(&here).await, Err(Error::Denied(_))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_clock_is_measured() {
    let store = store(database()).await;
    let world = World::make(&store, number()).await;
    let skew_at = async |now| world.running_at(now, &store, Principal::Operator, CheckStore).await.unwrap().unwrap();
    let skew = skew_at(now()).await;
    assert!(skew.abs() < 30_000, "{skew}");
    let skew = skew_at(now().plus_seconds(-90)).await;
    assert!((60_000..120_000).contains(&skew), "{skew}");
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_row_causes_refusal_without_effect() {
    let store = store(database()).await;
    let world = World::make(&store, number()).await;
    let holder = client(database()).await;
    let sql = format!("BEGIN; SELECT 1 FROM organizations WHERE id = '{}' FOR UPDATE", world.organization);
    holder.batch_execute(&sql).await.unwrap();
    let refusal = world.saved(&store).await.unwrap_err();
    assert!(matches!(refusal, Error::Store(StoreError::Unavailable(_))), "{refusal:?}");
    holder.batch_execute("COMMIT").await.unwrap();
    world.saved(&store).await.unwrap();
    let sql = format!("SELECT credentials FROM organizations WHERE id = '{}'", world.organization);
    assert_eq!(query(database(), &sql), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_connections_are_replaced_transparently() {
    let address = Cluster::shared().create_database();
    let store = store(&address).await;
    store.migrate(now(), &mut |_| {}).await.unwrap();
    let world = World::make(&store, number()).await;
    for _ in 0..5 {
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert_ne!(query(&address, cut), "0");
        world.saved(&store).await.unwrap();
        let read = ReadOrganization(world.organization);
        assert!(world.operate(&store, &Principal::Operator, read).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crashed_database_server_is_unavailable_until_restart() {
    let cluster = Cluster::start(Options::default());
    let store = store(&cluster.create_database()).await;
    store.migrate(now(), &mut |_| {}).await.unwrap();
    let world = World::make(&store, number()).await;
    world.saved(&store).await.unwrap();
    cluster.crash();
    for _ in 0..3 {
        let refusal = world.saved(&store).await.unwrap_err();
        assert!(matches!(refusal, Error::Store(StoreError::Unavailable(_))), "{refusal:?}");
    }
    cluster.resume();
    world.saved(&store).await.unwrap();
}

#[tokio::test]
async fn unreachable_address_is_reported_immediately() {
    let connect = |url: &str| PostgresStore::connect(PostgresSettings::new(SecretString::from(url)));
    let refusal = connect("postgres:///db?host=/nonexistent&user=x").await.unwrap_err();
    assert!(matches!(refusal, ConnectError::Unreachable(_)), "{refusal:?}");
    let refusal = connect("postgres://host:port/db").await.unwrap_err();
    assert!(matches!(refusal, ConnectError::Address(_)), "{refusal:?}");
    let refusal = connect("postgres://db.example/db?sslrootcert=/nonexistent").await.unwrap_err();
    assert!(matches!(refusal, ConnectError::Certificates(_)), "{refusal:?}");
}
