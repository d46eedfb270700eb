//! The power is cut under the embedded file. Every write and flush that reaches the disk is recorded, and the disks
//! that a power cut can leave are derived from the record ([`record`](crate::record)). On each disk, the file system is
//! mounted, which replays its journal, and the service is started. All writes that were acknowledged before the cut
//! must be stored.
//!
//! Disks that ignore flushes or write sectors wrongly are not covered. With `--without-sync`, the syncs of the service
//! do nothing: the same check must then find losses, which shows that it can find them.

use super::Ground;
use crate::image::{self, Mounted};
use crate::ledger::Outcome;
use crate::record::{Acknowledged, Cut, Record, Recorder};
use crate::report::Report;
use crate::rig::Rig;
use std::fs;
use std::path::Path;
use vault_tests::Vault;

/// Size of the disk, in MiB.
const SIZE: u64 = 48;
/// Writes of a recording, and the default number of disks that are derived from it.
const WRITES: usize = 200;
const DISKS: usize = 1_000;
/// Interval, in disks, of the check of each row.
const DEEPLY_EVERY: usize = 50;

pub(super) fn cut(ground: &Ground<'_>) -> Report {
    let untraced = ground.options.without_sync.then(super::syscalls::cannot_trace).flatten();
    if let Some(why) = image::impossible().or(untraced) {
        return Report::skipped("power-cut", ground.database, &why);
    }
    let place = tempfile::tempdir_in(&ground.options.log_dir).unwrap();
    let disk = image::formatted(place.path(), SIZE, 1024);
    let mounted = place.path().join("mounted");
    fs::create_dir(&mounted).unwrap();

    let first = Mounted::new(&disk, &mounted);
    let mut rig = Rig::of("power-cut", ground, Vault::absent_in(&mounted, None));
    rig.server.take().expect("its server runs").stop();
    drop(first);

    let without_sync = ground.options.without_sync;
    let (record, acknowledged) = record(&mut rig, &disk, &mounted, without_sync);
    let trial = place.path().join("trial");
    rig.report.figure("recorded", record.text());
    let mut unmountable = 0_usize;
    record.disks(ground.options.rounds(DISKS), &mut ground.random(), |image, cut| {
        fs::write(&trial, image).unwrap();
        unmountable += usize::from(!look(&mut rig, &trial, &mounted, &acknowledged, cut));
    });
    let disks = rig.report.rounds;
    rig.report.figure("disks", disks);
    rig.report.figure("disks that ext4 could not mount", unmountable);
    if without_sync {
        rig.report.figure("syncs", "none: losses are expected");
    }
    // The vault in its state after the recording.
    let _mounted = Mounted::new(&disk, &mounted);
    rig.serve();
    rig.check();
    rig.report.rounds = disks;
    rig.finish()
}

/// Makes writes on a disk whose every write is recorded. With `without_sync`, the syncs of the service do nothing.
fn record(rig: &mut Rig, disk: &Path, mounted: &Path, without_sync: bool) -> (Record, Vec<Acknowledged>) {
    let before = fs::read(disk).unwrap();
    let recorder = Recorder::start(disk, mounted);
    rig.serve_by(without_sync.then(super::syscalls::without_sync));
    let client = rig.client();
    let mut acknowledged = Vec::new();
    let mut tally = crate::crew::Tally::default();
    for number in 0..WRITES {
        let before = recorder.length();
        let worker = &mut rig.crew.workers[number % 4];
        let outcome = worker.write(&client, &rig.log, &mut tally);
        let write = worker.last_write.clone().expect("it wrote");
        assert_eq!(outcome, Outcome::Done, "{}", rig.vault.log());
        acknowledged.push(Acknowledged { write, before, after: recorder.length() });
    }
    rig.report.tally.add(tally);
    rig.server.take().expect("its server runs").stop();
    (recorder.stop(before), acknowledged)
}

/// Mounts a disk as a power cut left it and checks the data. Returns `false` if the disk cannot be mounted.
fn look(rig: &mut Rig, disk: &Path, mounted: &Path, acknowledged: &[Acknowledged], cut: Cut) -> bool {
    let Some(_mounted) = Mounted::try_new(disk, mounted) else { return false };
    rig.look_at_disk(acknowledged, cut, rig.report.rounds % DEEPLY_EVERY == DEEPLY_EVERY - 1);
    true
}
