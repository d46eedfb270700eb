//! Saves and list reads of the embedded store, without HTTP.
//!
//! `cargo bench -p vault-diesel`, or with a number of rows to fill the vault with, 20,000 at least: `-- 1000000`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people to run")]

#[allow(dead_code, reason = "the tests use all of it")]
#[path = "../tests/support/world.rs"]
mod world;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vault_core::credential::{CredentialQuery, ListFilter};
use vault_core::namespace::Namespace;
use vault_core::time::Timestamp;
use vault_diesel::{SqliteKey, SqliteSettings, SqliteStore};
use world::World;
use zeroize::Zeroizing;

const CALLERS: usize = 64;
const SAVES: usize = 40_000;
const LISTS: usize = 4_000;
/// Number of rows for which each namespace has a full page.
const FEWEST: usize = 20_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let fill =
        arguments.iter().find_map(|argument| argument.parse().ok()).map_or(FEWEST, |rows: usize| rows.max(FEWEST));
    let only = arguments.iter().find(|argument| argument.parse::<usize>().is_err()).map_or("", String::as_str);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("bench.db");
    runtime.block_on(async {
        let (store, world) = vault(&path).await;
        report("filled by 512 callers", fill, saves(&store, &world, fill, 512).await);
        for round in 1..=3 {
            println!("round {round}");
            if "saves".contains(only) {
                report("  saves, 64 callers", SAVES, saves(&store, &world, SAVES, CALLERS).await);
                report("  saves, 1 caller", SAVES / 40, saves(&store, &world, SAVES / 40, 1).await);
            }
            if "lists".contains(only) {
                let (all, one) = (None, Some(world::namespace(3)));
                report("  list of 100, 1 caller", LISTS, lists(&store, &world, LISTS, &all, 1).await);
                report("  list of 100, 8 callers", LISTS, lists(&store, &world, LISTS, &all, 8).await);
                report("  list of 100 of a namespace", LISTS, lists(&store, &world, LISTS, &one, 1).await);
            }
        }
        store.close().await;
    });
}

/// Creates a vault in the file `path`.
async fn vault(path: &Path) -> (Arc<SqliteStore>, Arc<World>) {
    let settings = SqliteSettings {
        create: true,
        ..SqliteSettings::new(path.to_path_buf(), SqliteKey::from_bytes(Zeroizing::new([7; 32])))
    };
    let store = SqliteStore::open(settings).unwrap();
    store.migrate(Timestamp::from_millis(0), &mut |_| {}).await.unwrap();
    let world = Arc::new(World::make(&store, 1).await);
    (store, world)
}

/// Wall-clock time and the processor time of all threads.
#[derive(Clone, Copy)]
struct Stopwatch {
    started: Instant,
    processor: Duration,
}

impl Stopwatch {
    fn start() -> Self {
        Self { started: Instant::now(), processor: processor_time() }
    }

    fn stop(self) -> (Duration, Duration) {
        (self.started.elapsed(), processor_time() - self.processor)
    }
}

/// User and system time of this process, from fields 14 and 15 of `/proc/self/stat` (ticks of 10 ms).
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

fn report(what: &str, count: usize, (took, processor): (Duration, Duration)) {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    let rate = count as f64 / took.as_secs_f64();
    println!("{what:40} {rate:>9.0}/s  {:>8.1} µs each, {:>6.1} µs of processor", each(took), each(processor));
}

async fn saves(store: &Arc<SqliteStore>, world: &Arc<World>, count: usize, callers: usize) -> (Duration, Duration) {
    let watch = Stopwatch::start();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (store, world) = (Arc::clone(store), Arc::clone(world));
            let share = count / callers + usize::from(caller < count % callers);
            tokio::spawn(async move {
                for _ in 0..share {
                    world.saved(&store).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    watch.stop()
}

async fn lists(
    store: &Arc<SqliteStore>,
    world: &Arc<World>,
    count: usize,
    namespace: &Option<Namespace>,
    callers: usize,
) -> (Duration, Duration) {
    let watch = Stopwatch::start();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (store, world, namespace) = (Arc::clone(store), Arc::clone(world), namespace.clone());
            tokio::spawn(async move {
                for _ in 0..count / callers {
                    let query = CredentialQuery {
                        filter: ListFilter { namespace: namespace.clone(), ..ListFilter::default() },
                        ..world.list(100)
                    };
                    assert_eq!(world.listed(&store, query).await.unwrap().len(), 100);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    watch.stop()
}
