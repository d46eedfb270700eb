//! The power is cut. Every write and every flush that reaches the disk is recorded (QEMU's `blklogwrites`, below a loop
//! device), and disks are made of the record as a power cut may leave them: everything up to a flush, and everything up to a
//! flush with a random part of what was written after it, in sectors of 512 bytes. On each disk the file system is mounted,
//! which replays its journal, the service is started, and all that was acknowledged before the cut must be there.
//!
//! What an acknowledged write needs was flushed before its answer came, so the length of the record at that moment tells what
//! a disk must hold. Only the embedded file; a disk that lies about flushes is not shown, nor one that writes sectors wrongly.
//! With `--without-sync` the service's syncs do nothing: that the same look then finds losses shows that it can.

use super::Ground;
use crate::chance::Chance;
use crate::image::{self, EXPORTED, Export, Mounted};
use crate::ledger::{Outcome, Possible, State};
use crate::report::Report;
use crate::rig::Rig;
use crate::worker::Write;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;
use tempfile::TempDir;
use vault_tests::Vault;

/// Of the disk, in MiB.
const SIZE: u64 = 48;
/// Bytes of a sector of the record and of the disk.
const SECTOR: usize = 512;
/// Writes of a recording, and how many disks are made of it if no other number is asked for.
const WRITES: usize = 200;
const DISKS: usize = 1_000;
/// Rows are looked at one by one on one disk of so many.
const DEEPLY_EVERY: usize = 50;

const FLUSH: u64 = 1;
const DISCARD: u64 = 4;

/// What reached the disk.
struct Entry {
    /// Where it stands in the record, in bytes: its end.
    end: u64,
    flush: bool,
    /// Where on the disk, in bytes.
    place: usize,
    data: Vec<u8>,
}

/// A write of the client, and the length of the record before and after it.
struct Acknowledged {
    write: Write,
    before: u64,
    after: u64,
}

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
    let mut bytes = fs::read(&disk).unwrap();

    let without_sync = ground.options.without_sync;
    let (entries, acknowledged) = record(&mut rig, &place, &disk, &mounted, without_sync);
    let trial = place.path().join("trial");
    let mut chance = ground.chance();
    let flushes: Vec<usize> = (0..entries.len()).filter(|n| entries[*n].flush).collect();
    let rounds = ground.options.rounds(DISKS);
    rig.report.figure(
        "recorded",
        format!("{} writes and {} flushes of the disk", entries.len() - flushes.len(), flushes.len()),
    );
    // Of each interval between flushes as many disks as come to it.
    let each = rounds.div_ceil(flushes.len()).max(1);
    let step = flushes.len().div_ceil(rounds).max(1);
    let (mut next, mut unmountable) = (0, 0_usize);
    for (number, flush) in flushes.iter().enumerate() {
        let pending = &entries[next..*flush];
        if number % step == step - 1 {
            let durable = if next == 0 { 0 } else { entries[next - 1].end };
            for kind in 0..each {
                let mut image = bytes.clone();
                // Everything up to this flush, once; parts of it otherwise.
                let needed = if kind == 0 { entries[*flush].end } else { durable };
                for entry in pending {
                    lay(&mut image, entry, (kind > 0).then_some(&mut chance));
                }
                fs::write(&trial, image).unwrap();
                let attempted = entries[*flush].end;
                if !look(&mut rig, &trial, &mounted, &acknowledged, (needed, attempted)) {
                    unmountable += 1;
                }
            }
        }
        for entry in pending {
            lay(&mut bytes, entry, None);
        }
        next = *flush + 1;
    }
    let disks = rig.report.rounds;
    rig.report.figure("disks", disks);
    rig.report.figure("disks that ext4 could not mount", unmountable);
    if without_sync {
        rig.report.figure("syncs", "none: losses are expected");
    }
    // The vault as it was left.
    let _mounted = Mounted::new(&disk, &mounted);
    rig.serve();
    rig.check();
    rig.report.rounds = disks;
    rig.finish()
}

/// Lays what was written on the disk: all of it, or by chance all, some sectors or nothing.
fn lay(image: &mut [u8], entry: &Entry, chance: Option<&mut Chance>) {
    let Some(chance) = chance else {
        image[entry.place..entry.place + entry.data.len()].copy_from_slice(&entry.data);
        return;
    };
    let how = chance.below(4);
    for (number, sector) in entry.data.chunks(SECTOR).enumerate() {
        if how < 2 || how == 2 && chance.below(2) == 0 {
            let place = entry.place + number * SECTOR;
            image[place..place + sector.len()].copy_from_slice(sector);
        }
    }
}

/// Writes on a disk whose every write is recorded; `without_sync`: by a service whose syncs do nothing.
fn record(
    rig: &mut Rig,
    place: &TempDir,
    disk: &Path,
    mounted: &Path,
    without_sync: bool,
) -> (Vec<Entry>, Vec<Acknowledged>) {
    let log = place.path().join("record");
    File::create(&log).unwrap();
    let nodes = [
        format!("driver=file,node-name=disk,filename={}", disk.display()),
        format!("driver=file,node-name=log,filename={}", log.display()),
        format!("driver=blklogwrites,node-name={EXPORTED},file=disk,log=log,log-sector-size=512"),
    ];
    let recorder = Export::start(&nodes, &place.path().join("export"));
    let device = Mounted::new(&recorder.path, mounted);
    let length = || fs::metadata(&log).unwrap().len();
    rig.serve_by(without_sync.then(super::syscalls::without_sync));
    let client = rig.client();
    let mut acknowledged = Vec::new();
    let mut tally = crate::crew::Tally::default();
    for number in 0..WRITES {
        let before = length();
        let worker = &mut rig.crew.workers[number % 4];
        let outcome = worker.write(&client, &rig.log, &mut tally);
        let write = worker.last_write.clone().expect("it wrote");
        assert_eq!(outcome, Outcome::Done, "{}", rig.vault.log());
        acknowledged.push(Acknowledged { write, before, after: length() });
    }
    rig.report.tally.add(tally);
    rig.server.take().expect("its server runs").stop();
    drop(device);
    drop(recorder);
    (entries(&fs::read(log).unwrap()), acknowledged)
}

/// Reads a record: a sector about it, then each entry, a sector with what is written behind it.
fn entries(record: &[u8]) -> Vec<Entry> {
    let number = |place: usize| u64::from_le_bytes(record[place..place + 8].try_into().unwrap());
    assert_eq!(number(0), 0x006a_7366_7773_6872, "not a record of writes");
    let (count, mut place, mut entries) = (number(16), SECTOR, Vec::new());
    for _ in 0..count {
        let (sector, sectors, flags) = (number(place), number(place + 8), number(place + 16));
        place += SECTOR;
        let mut data = Vec::new();
        if flags & DISCARD == 0 {
            let length = usize::try_from(sectors).unwrap() * SECTOR;
            data = record[place..place + length].to_vec();
            place += length;
        }
        let on_disk = usize::try_from(sector).unwrap() * SECTOR;
        entries.push(Entry { end: place as u64, flush: flags & FLUSH != 0, place: on_disk, data });
    }
    entries
}

/// Mounts a disk as a power cut left it, and compares. Whether it could be mounted.
fn look(
    rig: &mut Rig,
    disk: &Path,
    mounted: &Path,
    acknowledged: &[Acknowledged],
    (needed, attempted): (u64, u64),
) -> bool {
    let Some(_mounted) = Mounted::try_new(disk, mounted) else { return false };
    rig.report.rounds += 1;
    let mut server = rig.spawn_by(None);
    if !super::syscalls::wait(&mut server) {
        let text = rig.vault.log();
        let last = text.lines().last().unwrap_or_default();
        rig.report.losses.push(format!("disk {}: the server does not start: {last}", rig.report.rounds));
        return true;
    }
    rig.server = Some(server);
    let mut keys: BTreeMap<(String, usize), (Option<String>, Possible)> = BTreeMap::new();
    for done in acknowledged.iter().filter(|done| done.before < attempted) {
        let outcome = if done.after <= needed { Outcome::Done } else { Outcome::Unsure };
        let Write { namespace, save, id, state } = done.write.clone();
        let key = keys.entry((namespace, save)).or_insert_with(|| (None, Possible::new()));
        key.0 = key.0.take().or(id);
        key.1.attempted(state, outcome);
    }
    match rig.listed() {
        Ok(listed) => {
            let mut found: HashMap<String, usize> = listed.iter().map(value).collect();
            for ((namespace, save), (id, mut possible)) in keys {
                let state = id.as_ref().and_then(|id| found.remove(id)).map_or(State::Absent, State::Holds);
                if let Err(loss) = possible.seen(state) {
                    rig.report.losses.push(format!("disk {}: {namespace} save {save} {loss}", rig.report.rounds));
                }
            }
            rig.report
                .losses
                .extend(found.into_keys().map(|id| format!("{id} is there, and nobody saved it or it was deleted")));
        }
        Err(answer) => rig.report.losses.push(format!("disk {}: {answer:?}", rig.report.rounds)),
    }
    if rig.report.rounds.is_multiple_of(DEEPLY_EVERY) {
        rig.check_stored();
    }
    rig.kill();
    true
}

/// Id and number of a listed credential.
fn value(item: &Value) -> (String, usize) {
    let bucket = item["information"]["bucket"].as_str().unwrap_or_default();
    let number = bucket.strip_prefix("exports-").and_then(|number| number.parse().ok()).unwrap_or_default();
    (item["id"].as_str().expect("an id").to_owned(), number)
}
