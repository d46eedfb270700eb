//! One seed: starts a store, writes and interrupts it, several times on the same disk.

use crate::ledger::{Act, Ledger, Request};
use crate::look::{self, KEY};
use crate::world::{self, NOW, ORGANIZATION};
use futures_util::poll;
use rusqlite::Connection;
use simulated_disk::disk::{Disk, Failure, Lie};
use simulated_disk::random::Random;
use simulated_disk::vfs::Mount;
use std::fmt;
use std::future::Future;
use std::ops::AddAssign;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use tempfile::TempDir;
use vault_core::credential::ChangedVersion;
use vault_core::principal::Principal;
use vault_core::{Error, Refusal};
use vault_diesel::{SqliteKey, SqliteSettings, SqliteStore};
use vault_testkit::fake::FakeVault;
use zeroize::Zeroizing;

/// Planted faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    /// The fault of the disk.
    pub lie: Lie,
    /// If `true`, a write counts as acknowledged as soon as the writer receives it.
    pub early_answers: bool,
}

/// Results of seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of seeds.
    pub seeds: u64,
    /// Number of power cuts after which the disk was compared with the acknowledged writes.
    pub cuts: u64,
    /// Number of process kills, after which the disk is unchanged.
    pub kills: u64,
    /// Number of failed calls of the store.
    pub failed_calls: u64,
    /// Number of times that the store stopped because of a disk failure.
    pub stops: u64,
    /// Number of acknowledged writes.
    pub acknowledged: u64,
    /// Number of writes with unknown outcome.
    pub indeterminate: u64,
    /// Number of calls that write, sync, create or delete.
    pub calls: u64,
    /// Number of syncs.
    pub syncs: u64,
    /// Descriptions of lost or wrong data.
    pub violations: Vec<String>,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.cuts += other.cuts;
        self.kills += other.kills;
        self.failed_calls += other.failed_calls;
        self.stops += other.stops;
        self.acknowledged += other.acknowledged;
        self.indeterminate += other.indeterminate;
        self.calls += other.calls;
        self.syncs += other.syncs;
        self.violations.extend(other.violations);
    }
}

impl Outcome {
    /// Returns the numbers in the order of the fields, followed by the number of violations.
    pub fn numbers(&self) -> [u64; 10] {
        let Self { seeds, cuts, kills, failed_calls, stops, acknowledged, indeterminate, calls, syncs, violations } =
            self;
        let violations = u64::try_from(violations.len()).unwrap_or(u64::MAX);
        [*seeds, *cuts, *kills, *failed_calls, *stops, *acknowledged, *indeterminate, *calls, *syncs, violations]
    }
}

/// The environment of seeds.
pub struct Ground {
    /// The files that the store creates here are empty, because the disks are in memory.
    directory: TempDir,
    /// A disk with a database without credentials.
    new: Disk,
}

impl Ground {
    /// Creates the environment.
    pub async fn prepare() -> Self {
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let mut ground = Self { directory: directory.expect("a directory"), new: Disk::empty(Lie::None) };
        let mut player = Player::new(0, Planted::default(), &ground);
        let made = player.live(Disk::empty(Lie::None), 0, None).await;
        assert!(player.outcome.violations.is_empty(), "{:?}", player.outcome.violations);
        ground.new = made.expect("a new database");
        ground
    }
}

/// Plays one seed.
pub async fn play(seed: u64, planted: Planted, ground: &Ground) -> Outcome {
    let mut player = Player::new(seed, planted, ground);
    player.play().await;
    let mut outcome = player.outcome;
    outcome.violations.iter_mut().for_each(|violation| *violation = format!("seed {seed}: {violation}"));
    outcome
}

struct Player<'a> {
    random: Random,
    planted: Planted,
    ground: &'a Ground,
    ledger: Ledger,
    outcome: Outcome,
}

impl<'a> Player<'a> {
    fn new(seed: u64, planted: Planted, ground: &'a Ground) -> Self {
        let (ledger, outcome) = (Ledger::default(), Outcome { seeds: 1, ..Outcome::default() });
        Self { random: Random::of(seed, 7), planted, ground, ledger, outcome }
    }

    async fn play(&mut self) {
        let is_new = self.random.below(10) == 0;
        let lie = self.planted.lie;
        let mut disk = if is_new { Disk::empty(lie) } else { self.ground.new.after_process(lie) };
        let lives = 3 + self.random.below(5);
        for life in 0..lives {
            // The first round may create the schema, which needs most of the calls. In a long run, the log is
            // checkpointed.
            let rounds = if self.random.below(6) == 0 { 60 } else { 6 };
            let calls = if is_new && life == 0 { 1_500 } else { 40 * rounds };
            let stop = disk.calls() + 1 + self.random.draw() % calls;
            let stop = (self.random.below(10) > 0).then_some(stop);
            let Some(next) = self.live(disk, rounds, stop).await else { return };
            disk = next;
        }
        // Check the disk that the last run left.
        drop(self.live(disk, 0, None).await);
    }

    /// Runs the store once, at most until the call `stop`. Returns the disk that it leaves, or `None` after an error.
    async fn live(&mut self, disk: Disk, rounds: u64, stop: Option<u64>) -> Option<Disk> {
        let (is_kill, lie) = (self.random.below(5) == 0, self.planted.lie);
        let cuts: Vec<Random> = (0..=self.random.below(3)).map(|_| Random::of(self.random.draw(), 5)).collect();
        let disk = Arc::new(disk);
        if let Some(stop) = stop {
            disk.stop_at(stop);
        }
        let (calls, syncs) = (disk.calls(), disk.syncs());
        let path = self.new_path();
        let mount = Mount::new(&path, Arc::clone(&disk));
        let mut session = Box::pin(Session { player: self, disk: &disk, path: &path }.run(rounds));
        // Poll the store first: a response that was sent before the power cut counts.
        let end = tokio::select! {
            biased;
            end = &mut session => Some(end),
            () = disk.stopped() => None,
        };
        let mut left: Vec<Disk> = match is_kill {
            true => vec![disk.after_process(lie)],
            false => cuts.into_iter().map(|random| disk.cut(random)).collect(),
        };
        let (calls, syncs, failed) = (disk.calls() - calls, disk.syncs() - syncs, disk.failed());
        // The store continues on a disk that is not used any more.
        disk.resume();
        drop(session);
        drop(end);
        drop(mount);
        disk.discard();
        remove(&path);
        self.outcome.calls += calls;
        self.outcome.syncs += syncs;
        self.outcome.failed_calls += failed;
        if is_kill {
            self.outcome.kills += 1;
        } else {
            self.outcome.cuts += u64::try_from(left.len()).unwrap_or_default();
        }
        let last = left.pop();
        for other in left {
            let ledger = self.ledger.clone();
            self.glance(other).await;
            self.ledger = ledger;
        }
        last.filter(|_| self.outcome.violations.is_empty())
    }

    /// Compares a disk with the ledger.
    async fn glance(&mut self, disk: Disk) {
        let disk = Arc::new(disk);
        let path = self.new_path();
        let mount = Mount::new(&path, Arc::clone(&disk));
        drop(Session { player: self, disk: &disk, path: &path }.run(0).await);
        drop(mount);
        remove(&path);
    }

    fn new_path(&self) -> String {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        self.ground.directory.path().join(format!("{number}.db")).to_str().expect("a path in UTF-8").to_owned()
    }

    fn violation(&mut self, violation: impl fmt::Display) {
        self.outcome.violations.push(violation.to_string());
    }
}

/// Removes the empty file that the store created at the path of its database.
fn remove(path: &str) {
    // The file does not exist if the store failed earlier.
    let _ = std::fs::remove_file(path);
}

/// A running store.
struct Session<'a, 'p> {
    player: &'a mut Player<'p>,
    disk: &'a Arc<Disk>,
    path: &'a str,
}

/// A pending response.
type Answer = Pin<Box<dyn Future<Output = Result<(), Refused>>>>;

/// The reason why a write was not acknowledged.
enum Refused {
    /// The outcome is unknown.
    Indeterminate(Error),
    /// The response is wrong.
    Wrongly(String),
}

impl Session<'_, '_> {
    /// Runs the store once. Returns it unless it was closed. The process then ends with it.
    async fn run(mut self, rounds: u64) -> Option<Arc<SqliteStore>> {
        // Calls may also fail while the store opens and checkpoints the log.
        let random = self.player.random.below(8);
        let may_fail = rounds > 0 && random == 0;
        if may_fail {
            let failure = self.failure(60, 60);
            self.disk.fail(Some(failure));
        }
        let (store, started) = self.begin().await;
        self.disk.fail(None);
        let Some(store) = store else {
            if !may_fail {
                self.player.violation(format!("the store does not open: {}", started.err().unwrap_or_default()));
            }
            return None;
        };
        let was_there = match started {
            Ok(was_there) => was_there,
            Err(error) => {
                if !may_fail {
                    self.player.violation(format!("the store does not begin: {error}"));
                }
                return Some(store);
            }
        };
        match look::all(&store, self.path, was_there && !may_fail).await {
            Ok(held) => {
                let (name, audit) =
                    (|number| world::credential(number).to_string(), |number| world::audit(number).to_string());
                let violations = self.player.ledger.compare(&held, name, audit);
                violations.into_iter().for_each(|violation| self.player.violation(violation));
            }
            Err(error) => self.player.violation(format!("it cannot be read: {error}")),
        }
        if rounds > 0 && self.player.random.below(3) == 0 {
            let failure = self.failure(20 * rounds, 10 * rounds);
            self.disk.fail(Some(failure));
        }
        let mut reader = None;
        for _ in 0..rounds {
            if self.player.random.below(12) == 0 {
                reader = self.turn_reader(reader).await;
            }
            self.round(&store).await;
            if tokio::time::timeout(std::time::Duration::ZERO, store.failed()).await.is_ok() {
                self.player.outcome.stops += 1;
                return Some(store);
            }
        }
        if rounds > 0 && self.player.random.below(2) == 0 {
            tokio::task::spawn_blocking(move || drop(reader)).await.expect("a reader ends");
            store.close().await;
            return None;
        }
        Some(store)
    }

    /// Opens the store, waits until the writer has checkpointed the log, and creates the organization. Returns `true`
    /// if the organization existed.
    async fn begin(&mut self) -> (Option<Arc<SqliteStore>>, Result<bool, String>) {
        let key = SqliteKey::from_bytes(Zeroizing::new(KEY));
        let settings =
            SqliteSettings { create: true, page_cache: 4, readers: 2, ..SqliteSettings::new(self.path.into(), key) };
        let opened = tokio::task::spawn_blocking(|| SqliteStore::open(settings)).await.expect("opening ends");
        let store = match opened {
            Ok(store) => store,
            Err(error) => return (None, Err(format!("{error:?}"))),
        };
        let started = async {
            let none = world::delete(&store, u64::MAX, u64::MAX).await;
            if !matches!(none, Err(Error::Refused(Refusal::NotFound) | Error::Denied(_))) {
                store.migrate(NOW, &mut |_| {}).await.map_err(|error| format!("{error:?}, after {none:?}"))?;
            }
            let vault = FakeVault::on(Arc::clone(&store));
            let made = match vault.operator().organization_with_id(ORGANIZATION).await {
                Err(Error::Refused(Refusal::NoOrganization)) => {
                    let create = world::organization();
                    vault.operations().run(&vault.environment, &Principal::Operator, create).await.map(|_| false)
                }
                found => found.map(|_| true),
            };
            made.map_err(|error| format!("{error:?}"))
        };
        let started = started.await;
        (Some(store), started)
    }

    /// Returns a failure that starts within this number of calls or reads.
    fn failure(&mut self, calls: u64, reads: u64) -> Failure {
        let random = &mut self.player.random;
        let long = if random.below(2) == 0 { 1 } else { 1 + random.draw() % 30 };
        let from = self.disk.calls() + 1 + random.draw() % calls;
        match random.below(4) {
            0 => Failure::Full { numbers: (from, from + long) },
            1 => {
                let from = self.disk.reads() + 1 + random.draw() % reads;
                Failure::Reads { numbers: (from, from + long) }
            }
            _ => Failure::Calls { numbers: (from, from + long), reread: random.below(2) == 0 },
        }
    }

    /// Starts or ends a read transaction: the log must keep the pages that it needs.
    async fn turn_reader(&self, reader: Option<Connection>) -> Option<Connection> {
        let path = self.path.to_owned();
        let turn = move || {
            if reader.is_some() {
                return None;
            }
            let started = look::bare(&path).and_then(|connection| {
                connection.execute_batch("BEGIN; SELECT count(*) FROM credentials")?;
                Ok(connection)
            });
            started.ok()
        };
        tokio::task::spawn_blocking(turn).await.expect("a reader begins")
    }

    /// Sends several requests concurrently. While the writer is blocked before the first, the others are queued, so
    /// that they share a transaction.
    async fn round(&mut self, store: &Arc<SqliteStore>) {
        let requests: Vec<Request> = (0..=self.player.random.below(6)).map(|_| self.choose()).collect();
        let mut answers = Vec::new();
        self.disk.hold();
        for (index, request) in requests.iter().enumerate() {
            let mut answer = ask(store, request);
            if self.player.planted.early_answers {
                self.player.ledger.acknowledge(request.credential);
            }
            let mut answered = poll!(&mut answer);
            if index == 0 && answered.is_pending() {
                answered = tokio::select! {
                    biased;
                    answer = &mut answer => Poll::Ready(answer),
                    () = self.disk.held() => Poll::Pending,
                };
            }
            answers.push((request.credential, answered, answer));
        }
        self.disk.release();
        for (credential, answered, answer) in answers {
            let answered = match answered {
                Poll::Ready(answered) => answered,
                Poll::Pending => answer.await,
            };
            match answered {
                Ok(()) => {
                    self.player.outcome.acknowledged += 1;
                    self.player.ledger.acknowledge(credential);
                }
                Err(Refused::Indeterminate(error)) => {
                    self.player.outcome.indeterminate += 1;
                    if self.disk.failed() == 0 {
                        self.player.violation(format!("refused on a disk that is well: {error:?}"));
                    }
                }
                Err(Refused::Wrongly(why)) => self.player.violation(why),
            }
        }
    }

    /// Chooses a request for a credential without a pending request.
    fn choose(&mut self) -> Request {
        let Player { ledger, random, .. } = &mut *self.player;
        let number = ledger.number();
        let mut free = ledger.free();
        let repeat = if random.below(2) == 0 { ledger.to_repeat.pop() } else { None };
        let act = random.below(10);
        let (credential, act, after) = if let Some((request, saved, stood)) = repeat {
            match stood {
                true => (ledger.number(), Act::Repeat { request, saved }, Vec::new()),
                false => (ledger.number(), Act::RepeatLost { request }, vec![number]),
            }
        } else if act < 5 || free.is_empty() {
            (ledger.number(), Act::Save, vec![number])
        } else {
            let (credential, mut versions) = free.swap_remove(random.below(free.len()));
            match act {
                5..8 => {
                    versions.push(number);
                    (credential, Act::Replace, versions)
                }
                _ => (credential, Act::Delete, Vec::new()),
            }
        };
        let request = Request { number, credential, act, after };
        ledger.begin(request.clone());
        request
    }
}

/// Sends a request to the store.
fn ask(store: &Arc<SqliteStore>, request: &Request) -> Answer {
    let (store, Request { number, credential, act, after }) = (Arc::clone(store), request.clone());
    Box::pin(async move {
        let (answered, wanted) = match act {
            Act::Save | Act::Repeat { .. } | Act::RepeatLost { .. } => {
                let (key, saved) = match act {
                    Act::Repeat { request, saved } => (request, saved),
                    Act::RepeatLost { request } => (request, credential),
                    _ => (number, credential),
                };
                let answered = world::operate(&store, number, world::save(credential, number, key)).await;
                (answered.map(|id| id.to_string()), world::credential(saved).to_string())
            }
            Act::Replace => {
                let revision = i64::try_from(after.len()).unwrap_or_default() - 1;
                let answered = world::operate(&store, number, world::replace(credential, revision, number)).await;
                let wanted = ChangedVersion { version: revision + 1, revision: Some(revision + 1) };
                (answered.map(|changed| format!("{changed:?}")), format!("{wanted:?}"))
            }
            Act::Delete => {
                let answered = world::delete(&store, number, credential).await;
                (answered.map(|()| String::new()), String::new())
            }
        };
        match answered {
            Ok(answered) if answered == wanted => Ok(()),
            Ok(answered) => Err(Refused::Wrongly(format!("{act:?} was answered {answered}, not {wanted}"))),
            Err(error @ (Error::Denied(_) | Error::Refused(_))) => {
                Err(Refused::Wrongly(format!("{act:?} was refused: {error:?}")))
            }
            Err(error) => Err(Refused::Indeterminate(error)),
        }
    })
}
