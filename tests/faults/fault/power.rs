//! The power is cut. Every write and flush that reaches the disk is recorded, and the disks that a power cut can leave
//! are derived from the record ([`record`](crate::record)). On each disk, the file system is mounted, which replays its
//! journal, and the service is started. All writes that were acknowledged before the cut must be stored.
//!
//! Disks that ignore flushes or write sectors wrongly are not covered. With `--without-sync`, the syncs of the service or
//! of PostgreSQL do nothing: the same check must then find losses, which shows that it can find them.

use super::server::amcheck;
use super::syscalls::{cannot_trace, without_sync};
use super::{Ground, Outcome, possible};
use crate::image::{self, Mounted};
use crate::ledger::Outcome as Written;
use crate::log::AckLog;
use crate::record::{Acknowledged, Cut, Record, Recorder};
use crate::rig::Rig;
use crate::worker::Worker;
use crate::workers::{Stop, Tally};
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::{Client, Vault};

/// A disk in a directory, and the place where it is mounted.
struct Disk {
    place: TempDir,
    image: PathBuf,
    mounted: PathBuf,
}

impl Disk {
    fn new(ground: &Ground<'_>, megabytes: u64, block: usize) -> Self {
        let place = tempfile::tempdir_in(&ground.options.log_dir).unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap(); // PostgreSQL runs as another user
        let (image, mounted) = (image::formatted(place.path(), megabytes, block), place.path().join("mounted"));
        fs::create_dir(&mounted).unwrap();
        Self { place, image, mounted }
    }

    fn mount(&self) -> Mounted {
        Mounted::new(&self.image, &self.mounted)
    }

    /// Derives up to `most` disks from the record, mounts each of them and passes it to `look`, and reports the counts.
    fn look(&self, rig: &mut Rig<'_>, record: Record, most: usize, mut look: impl FnMut(&mut Rig<'_>, Cut)) {
        let trial = self.place.path().join("trial");
        let mut unmountable = 0;
        let mut random = rig.random.clone();
        rig.report.figure("recorded", record.text());
        record.disks(rig.ground.options.rounds(most), &mut random, |image, cut| {
            fs::write(&trial, image).unwrap();
            match Mounted::try_new(&trial, &self.mounted) {
                Some(_mounted) => look(rig, cut),
                None => unmountable += 1,
            }
        });
        rig.report.figure("disks", rig.report.rounds);
        rig.report.figure("disks that ext4 could not mount", unmountable);
        if rig.ground.options.without_sync {
            rig.report.figure("syncs", "none: losses are expected");
        }
    }
}

/// Power is cut under the embedded file.
pub(super) fn file(ground: &Ground<'_>) -> Outcome {
    let options = ground.options;
    possible(image::impossible().or(options.without_sync.then(cannot_trace).flatten()))?;
    let disk = Disk::new(ground, 48, 1024);
    let first = disk.mount();
    let mut rig = Rig::of(ground, Vault::absent_in(&disk.mounted, None));
    rig.stop();
    drop(first);

    let before = fs::read(&disk.image).unwrap();
    let recorder = Recorder::start(&disk.image, &disk.mounted);
    rig.serve_by(options.without_sync.then(without_sync));
    let client = rig.client();
    let (mut acknowledged, mut tally) = (Vec::new(), Tally::default());
    for number in 0..200 {
        let writer = &mut rig.workers.writers[number % 4];
        acknowledged.push(write(writer, &client, &recorder, &rig.log, &mut tally));
    }
    rig.report.tally.add(tally);
    rig.stop();
    let record = recorder.stop(before);

    disk.look(&mut rig, record, 1_000, |rig, cut| rig.look_at_disk(&acknowledged, cut, rig.report.rounds % 50 == 49));
    // The vault in its state after the recording.
    let _mounted = disk.mount();
    rig.serve();
    rig.check();
    rig.report.rounds -= 1;
    rig.finish()
}

/// Makes a write, which must be acknowledged, while a disk is recorded.
fn write(writer: &mut Worker, client: &Client, recorder: &Recorder, log: &AckLog, tally: &mut Tally) -> Acknowledged {
    let before = recorder.length();
    let outcome = writer.write(client, log, tally);
    assert_eq!(outcome, Written::Done, "nothing fails while the disk is recorded: {:?}", tally.wrong);
    Acknowledged { write: writer.last_write.clone().expect("it wrote"), before, after: recorder.length() }
}

/// Power is cut under PostgreSQL, which then recovers. The service is started with the anchor of that moment.
///
/// While the clients write, PostgreSQL makes checkpoints at any moment, so that it writes its data files as well as its
/// log. Another program syncs a separate file on the same disk, so that there are flushes that PostgreSQL did not
/// request.
pub(super) fn postgres(ground: &Ground<'_>) -> Outcome {
    possible(image::impossible())?;
    let disk = Disk::new(ground, 96, 4096);
    let first = disk.mount();
    let data = disk.mounted.join("data");
    fs::create_dir(&data).unwrap();
    let without_sync = ground.options.without_sync;
    // Small log files, which are soon reused, and few buffers, so that PostgreSQL writes data files.
    let settings = ["max_wal_size=4MB", "min_wal_size=2MB", "shared_buffers=2MB", "bgwriter_delay=20ms"];
    let cluster = Cluster::start(Options {
        fsync: !without_sync,
        settings: settings.map(str::to_owned).to_vec(),
        data: Some(data.clone()),
        initdb: ["--wal-segsize=1", "--data-checksums"].map(str::to_owned).to_vec(),
        ..Options::default()
    });
    let mut rig = Rig::on(ground, &cluster);
    rig.stop();
    cluster.stop();
    drop(first);

    let (record, acknowledged, anchors) = record(&mut rig, &cluster, &disk);
    let anchor = rig.vault.data_dir().join("orgvault.anchor");
    disk.look(&mut rig, record, 300, |rig, cut| {
        // The anchor on the host of the service at that time: it is at least as new as the anchor at the end of the
        // flushed part.
        let then = anchors.iter().rev().find(|(length, _)| *length <= cut.flushed);
        fs::write(&anchor, &then.unwrap_or(&anchors[0]).1).unwrap();
        forget_server(&data.join("postmaster.pid"), without_sync);
        if let Err(error) = cluster.try_resume() {
            rig.report.rounds += 1;
            let said: Vec<&str> = error.lines().rev().take(4).collect();
            rig.lose(format!("disk {}: PostgreSQL does not start: {said:?}", rig.report.rounds));
            return;
        }
        let deeply = rig.report.rounds % 25 == 24;
        rig.look_at_disk(&acknowledged, cut, deeply);
        if deeply && let Some(Err(wrong)) = amcheck(rig.vault.url()) {
            rig.lose(format!("disk {}: {wrong}", rig.report.rounds));
        }
        cluster.try_crash();
    });
    // The vault in its state after the recording.
    let left = disk.mount();
    fs::write(&anchor, &anchors[anchors.len() - 1].1).unwrap();
    cluster.resume();
    rig.serve();
    rig.check();
    rig.report.rounds -= 1;
    let report = super::server::finish(rig);
    cluster.stop();
    drop(left);
    report
}

/// Anchors with the length of the record at their time.
type Anchors = Vec<(u64, Vec<u8>)>;

/// Runs clients in parallel on a disk whose every write is recorded.
fn record(rig: &mut Rig<'_>, cluster: &Cluster, disk: &Disk) -> (Record, Vec<Acknowledged>, Anchors) {
    let before = fs::read(&disk.image).unwrap();
    let recorder = Recorder::start(&disk.image, &disk.mounted);
    cluster.resume();
    rig.serve();
    let anchor = rig.vault.data_dir().join("orgvault.anchor");
    let (address, url, stop) = (rig.address, rig.vault.url().to_owned(), AtomicBool::new(false));
    let (acknowledged, tally, anchors) = thread::scope(|scope| {
        let (recorder, stop, log, random) = (&recorder, &stop, &rig.log, &mut rig.random);
        let continues = || !stop.load(Ordering::Relaxed);
        let writers: Vec<_> = rig
            .workers
            .writers
            .iter_mut()
            .map(|writer| scope.spawn(move || write_all(writer, address, recorder, log)))
            .collect();
        scope.spawn(move || {
            while continues() {
                thread::sleep(random.millis(20, 200));
                cluster.execute(&url, "CHECKPOINT");
            }
        });
        scope.spawn(move || {
            let mut file = File::create(disk.mounted.join("neighbour")).unwrap();
            while continues() {
                thread::sleep(Duration::from_millis(50));
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
    rig.stop();
    cluster.stop();
    (recorder.stop(before), acknowledged, anchors)
}

/// Makes 100 writes of a client and returns them.
fn write_all(
    writer: &mut Worker,
    address: SocketAddr,
    recorder: &Recorder,
    log: &AckLog,
) -> (Vec<Acknowledged>, Tally) {
    let (client, mut tally) = (Client::new(address), Tally::default());
    let acknowledged = (0..100).map(|_| write(writer, &client, recorder, log, &mut tally)).collect();
    (acknowledged, tally)
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
