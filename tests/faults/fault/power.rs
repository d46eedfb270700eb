//! R03: the power is cut. Every write and every flush that reaches the disk is recorded (QEMU's `blklogwrites`, below a loop
//! device), and disks are made of the record as a power cut may leave them: everything up to a flush, and everything up to a
//! flush with a random part of what was written after it, in sectors of 512 bytes. On each disk the file system is mounted,
//! which replays its journal, the service is started, and all that was acknowledged before the cut must be there.
//!
//! What an acknowledged write needs was flushed before its answer came, so the length of the record at that moment tells what
//! a disk must hold. Only the embedded file; a disk that lies about flushes is not shown, nor one that writes sectors wrongly.

use super::Ground;
use super::disk::run;
use crate::chance::Chance;
use crate::ledger::{Outcome, Possible, State};
use crate::report::Report;
use crate::rig::Rig;
use crate::worker::Write;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
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
const LIMIT: Duration = Duration::from_secs(30);

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
    if let Some(why) = impossible() {
        return Report::skipped("power-cut", ground.database, &why);
    }
    let place = tempfile::tempdir_in(&ground.options.log_dir).unwrap();
    let disk = place.path().join("disk");
    File::create(&disk).unwrap().set_len(SIZE << 20).unwrap();
    let format = ["-q", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
    run(Command::new("mkfs.ext4").args(format).arg(&disk));
    let mounted = place.path().join("mounted");
    fs::create_dir(&mounted).unwrap();

    let first = Mounted::new(&disk, &mounted);
    let mut rig = Rig::of("power-cut", ground, Vault::absent_in(&mounted, None));
    rig.server.take().expect("its server runs").stop();
    drop(first);
    let mut bytes = fs::read(&disk).unwrap();

    let (entries, acknowledged) = record(&mut rig, &place, &disk, &mounted);
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

/// Writes on a disk whose every write is recorded.
fn record(rig: &mut Rig, place: &TempDir, disk: &Path, mounted: &Path) -> (Vec<Entry>, Vec<Acknowledged>) {
    let log = place.path().join("record");
    File::create(&log).unwrap();
    let recorder = Recorder::start(disk, &log, &place.path().join("export"));
    let device = Mounted::new(&recorder.export, mounted);
    let length = || fs::metadata(&log).unwrap().len();
    rig.serve();
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

/// A disk, mounted through a loop device until it goes.
struct Mounted {
    device: String,
    place: PathBuf,
}

impl Mounted {
    fn new(disk: &Path, place: &Path) -> Self {
        Self::try_new(disk, place).expect("the disk can be mounted")
    }

    fn try_new(disk: &Path, place: &Path) -> Option<Self> {
        let device = run(Command::new("losetup").args(["-f", "--show"]).arg(disk)).trim().to_owned();
        let mounted = Self { device, place: place.to_owned() };
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "ext4"]).arg(&mounted.device).arg(place).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then_some(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.place).stderr(Stdio::null()).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

/// The program that records.
struct Recorder {
    child: Child,
    export: PathBuf,
}

impl Recorder {
    fn start(disk: &Path, log: &Path, export: &Path) -> Self {
        File::create(export).unwrap();
        let mut qemu = Command::new("qemu-storage-daemon");
        qemu.arg("--blockdev").arg(format!("driver=file,node-name=disk,filename={}", disk.display()));
        qemu.arg("--blockdev").arg(format!("driver=file,node-name=log,filename={}", log.display()));
        qemu.args(["--blockdev", "driver=blklogwrites,node-name=top,file=disk,log=log,log-sector-size=512"]);
        qemu.arg("--export")
            .arg(format!("type=fuse,id=export,node-name=top,mountpoint={},writable=on", export.display()));
        let recorder = Self { child: qemu.spawn().unwrap(), export: export.to_owned() };
        let begun = Instant::now();
        while fs::metadata(export).unwrap().len() == 0 {
            assert!(begun.elapsed() < LIMIT, "qemu-storage-daemon exports nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        recorder
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // It writes the number of entries before it ends.
        let id = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Why disks cannot be recorded here, if they cannot.
fn impossible() -> Option<String> {
    if !rustix::process::getuid().is_root() {
        return Some("only root can mount disks".to_owned());
    }
    let probe = tempfile::tempdir().unwrap();
    let image = probe.path().join("image");
    File::create(&image).unwrap().write_all_at(&[0], (1 << 20) - 1).unwrap();
    match Command::new("losetup").args(["-f", "--show"]).arg(&image).output() {
        Ok(output) if output.status.success() => {
            let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let _ = Command::new("losetup").args(["-d", &device]).status();
        }
        _ => return Some("this machine has no loop devices".to_owned()),
    }
    let help = Command::new("qemu-storage-daemon").arg("--help").output();
    match help {
        Ok(help) if String::from_utf8_lossy(&help.stdout).contains("fuse") => None,
        Ok(_) => Some("qemu-storage-daemon exports no disks by FUSE".to_owned()),
        Err(_) => Some("qemu-storage-daemon is not installed (Debian: qemu-system-common, or qemu-utils)".to_owned()),
    }
}
