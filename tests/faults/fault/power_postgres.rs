//! The power is cut under PostgreSQL. Every write and flush of the disk with its data directory is recorded, and the
//! disks that a power cut can leave are derived from the record ([`record`](crate::record)). On each disk, the file
//! system is mounted, which replays its journal; PostgreSQL is started, which recovers; and then the service is started
//! with the anchor of that moment. All writes that were acknowledged before the cut must be stored.
//!
//! While the clients write, PostgreSQL makes checkpoints at any moment, so that it writes its data files as well as its
//! log. Another program syncs a separate file on the same disk, so that there are flushes that PostgreSQL did not
//! request. With `--without-sync`, PostgreSQL does not sync (`fsync=off`): the same check must then find losses, which
//! shows that it can find them.

use super::Ground;
use super::server::amcheck;
use crate::crew::{Stop, Tally};
use crate::image::{self, Mounted};
use crate::ledger::Outcome;
use crate::log::AckLog;
use crate::random::Random;
use crate::record::{Acknowledged, Cut, Record, Recorder};
use crate::report::Report;
use crate::rig::Rig;
use crate::worker::Worker;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::Client;

/// Size of the disk, in MiB.
const SIZE: u64 = 96;
/// Writes of each client in a recording, and the default number of disks that are derived from it.
const WRITES: usize = 100;
const DISKS: usize = 300;
/// Interval, in disks, of the check of each row, table and index.
const DEEPLY_EVERY: usize = 25;
/// Interval of the syncs of another program on the disk.
const NEIGHBOUR: Duration = Duration::from_millis(50);

/// Anchors with the length of the record at their time.
type Anchors = Vec<(u64, Vec<u8>)>;

pub(super) fn cut(ground: &Ground<'_>) -> Report {
    if let Some(why) = image::impossible() {
        return Report::skipped("postgres-power-cut", ground.database, &why);
    }
    let place = tempfile::tempdir_in(&ground.options.log_dir).unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap(); // the server runs as another user
    let disk = image::formatted(place.path(), SIZE, 4096);
    let mounted = place.path().join("mounted");
    fs::create_dir(&mounted).unwrap();

    let first = Mounted::new(&disk, &mounted);
    let data = mounted.join("data");
    fs::create_dir(&data).unwrap();
    let without_sync = ground.options.without_sync;
    // Small log files, which are soon reused, and few buffers, so that PostgreSQL writes data files.
    let settings = ["max_wal_size=4MB", "min_wal_size=2MB", "shared_buffers=2MB", "bgwriter_delay=20ms"];
    let cluster = Cluster::start(Options {
        fsync: !without_sync,
        settings: settings.map(str::to_owned).to_vec(),
        data: Some(data),
        initdb: ["--wal-segsize=1", "--data-checksums"].map(str::to_owned).to_vec(),
        ..Options::default()
    });
    let mut rig = Rig::on("postgres-power-cut", ground, &cluster);
    rig.server.take().expect("its server runs").stop();
    cluster.stop();
    drop(first);

    let mut random = ground.random();
    let (record, acknowledged, anchors) = record(&mut rig, &cluster, &disk, &mounted, &mut random);
    rig.report.figure("recorded", record.text());
    let (trial, anchor) = (place.path().join("trial"), anchor(&rig));
    let mut unmountable = 0_usize;
    record.disks(ground.options.rounds(DISKS), &mut random, |image, cut| {
        fs::write(&trial, image).unwrap();
        // The anchor on the host of the service at that time: it is at least as new as the anchor at the end of the
        // flushed part.
        let then = anchors.iter().rev().find(|(length, _)| *length <= cut.flushed);
        fs::write(&anchor, &then.unwrap_or(&anchors[0]).1).unwrap();
        unmountable += usize::from(!look(&mut rig, &cluster, &trial, &mounted, &acknowledged, (cut, without_sync)));
    });
    let disks = rig.report.rounds;
    rig.report.figure("disks", disks);
    rig.report.figure("disks that ext4 could not mount", unmountable);
    if without_sync {
        rig.report.figure("fsync", "off: losses are expected");
    }
    // The vault in its state after the recording.
    let left = Mounted::new(&disk, &mounted);
    fs::write(&anchor, &anchors[anchors.len() - 1].1).unwrap();
    cluster.resume();
    rig.serve();
    rig.check();
    rig.report.rounds = disks;
    let report = super::server::finish(rig);
    cluster.stop();
    drop(left);
    report
}

/// Returns the path of the anchor.
fn anchor(rig: &Rig) -> PathBuf {
    rig.vault.data_dir().join("orgvault.anchor")
}

/// Runs clients in parallel on a disk whose every write is recorded.
fn record(
    rig: &mut Rig,
    cluster: &Cluster,
    disk: &Path,
    mounted: &Path,
    random: &mut Random,
) -> (Record, Vec<Acknowledged>, Anchors) {
    let before = fs::read(disk).unwrap();
    let recorder = Recorder::start(disk, mounted);
    cluster.resume();
    rig.serve();
    let (anchor, address, url, stop) = (anchor(rig), rig.address, rig.vault.url().to_owned(), AtomicBool::new(false));
    let (acknowledged, tally, anchors) = thread::scope(|scope| {
        let (recorder, stop, log) = (&recorder, &stop, &rig.log);
        let continues = || !stop.load(Ordering::Relaxed);
        let writers: Vec<_> = rig
            .crew
            .workers
            .iter_mut()
            .map(|worker| scope.spawn(move || write(worker, address, recorder, log)))
            .collect();
        scope.spawn(move || {
            while continues() {
                thread::sleep(random.millis(20, 200));
                cluster.execute(&url, "CHECKPOINT");
            }
        });
        scope.spawn(move || {
            let mut file = File::create(mounted.join("neighbour")).unwrap();
            while continues() {
                thread::sleep(NEIGHBOUR);
                file.write_all(b"of another program").unwrap();
                file.sync_all().unwrap();
            }
        });
        let anchors = scope.spawn(move || {
            let mut anchors = vec![(0, fs::read(&anchor).unwrap())];
            while continues() {
                let now = fs::read(&anchor).unwrap();
                if anchors.last().is_none_or(|(_, last)| *last != now) {
                    anchors.push((recorder.length(), now));
                }
                thread::sleep(Duration::from_millis(1));
            }
            anchors
        });
        let stopping = Stop(stop);
        let (mut acknowledged, mut tally) = (Vec::new(), Tally::default());
        for writer in writers {
            let (own, counted) = writer.join().unwrap();
            acknowledged.extend(own);
            tally.add(counted);
        }
        drop(stopping);
        (acknowledged, tally, anchors.join().unwrap())
    });
    rig.report.tally.add(tally);
    rig.server.take().expect("its server runs").stop();
    cluster.stop();
    (recorder.stop(before), acknowledged, anchors)
}

/// Makes the writes of a client and returns those that were acknowledged.
fn write(worker: &mut Worker, address: SocketAddr, recorder: &Recorder, log: &AckLog) -> (Vec<Acknowledged>, Tally) {
    let (client, mut tally, mut acknowledged) = (Client::new(address), Tally::default(), Vec::new());
    for _ in 0..WRITES {
        let before = recorder.length();
        let outcome = worker.write(&client, log, &mut tally);
        assert_eq!(outcome, Outcome::Done, "nothing fails while the disk is recorded: {:?}", tally.wrong);
        let write = worker.last_write.clone().expect("it wrote");
        acknowledged.push(Acknowledged { write, before, after: recorder.length() });
    }
    (acknowledged, tally)
}

/// Mounts a disk as a power cut left it, starts PostgreSQL and the service, and checks the data. Returns `false` if the
/// disk cannot be mounted.
fn look(
    rig: &mut Rig,
    cluster: &Cluster,
    disk: &Path,
    mounted: &Path,
    acknowledged: &[Acknowledged],
    (cut, without_sync): (Cut, bool),
) -> bool {
    let Some(_mounted) = Mounted::try_new(disk, mounted) else { return false };
    forget_server(&mounted.join("data/postmaster.pid"), without_sync);
    if let Err(error) = cluster.try_resume() {
        rig.report.rounds += 1;
        let said: Vec<&str> = error.lines().rev().take(4).collect();
        rig.report.losses.push(format!("disk {}: PostgreSQL does not start: {said:?}", rig.report.rounds));
        return true;
    }
    let deeply = rig.report.rounds % DEEPLY_EVERY == DEEPLY_EVERY - 1;
    rig.look_at_disk(acknowledged, cut, deeply);
    if deeply && let Some(Err(wrong)) = amcheck(rig.vault.url()) {
        rig.report.losses.push(format!("disk {}: {wrong}", rig.report.rounds));
    }
    cluster.try_crash();
    true
}

/// Removes the PID file of a server if its PID now belongs to another process. After a restart of a host, no such
/// process exists. Without syncs the file can also be empty, for which PostgreSQL asks an operator to act. It is
/// removed so that the check can continue.
fn forget_server(file: &Path, without_sync: bool) {
    let Ok(text) = fs::read_to_string(file) else { return };
    let is_of_another = text.lines().next().is_some_and(|id| Path::new("/proc").join(id).exists());
    if is_of_another || without_sync && text.trim().is_empty() {
        fs::remove_file(file).unwrap();
    }
}
