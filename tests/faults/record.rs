//! A disk whose every write and flush is recorded (QEMU's `blklogwrites`, below a loop device), and the disks that a power cut
//! could leave of it: everything up to a flush, and everything up to a flush with a random part of what was written after it, in
//! sectors of 512 bytes.
//!
//! What an acknowledged write needs was flushed before its answer came, so the length of the record at that moment tells what
//! a disk must hold.

use crate::chance::Chance;
use crate::image::{EXPORTED, Export, Mounted};
use crate::ledger::{Outcome, Possible, State};
use crate::worker::Write;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Bytes of a sector of the record and of the disk.
const SECTOR: usize = 512;
const FLUSH: u64 = 1;
const DISCARD: u64 = 4;

/// A mounted disk that is being recorded.
pub(crate) struct Recorder {
    log: PathBuf,
    // Unmounted before its file goes.
    device: Mounted,
    export: Export,
}

impl Recorder {
    /// Mounts `disk` at `mounted`; what is written is recorded beside it.
    pub(crate) fn start(disk: &Path, mounted: &Path) -> Self {
        let (log, export) = (disk.with_extension("record"), disk.with_extension("export"));
        File::create(&log).unwrap();
        let nodes = [
            format!("driver=file,node-name=disk,filename={}", disk.display()),
            format!("driver=file,node-name=log,filename={}", log.display()),
            format!("driver=blklogwrites,node-name={EXPORTED},file=disk,log=log,log-sector-size=512"),
        ];
        let export = Export::start(&nodes, &export);
        let device = Mounted::new(&export.path, mounted);
        Self { log, device, export }
    }

    /// How long the record is.
    pub(crate) fn length(&self) -> u64 {
        fs::metadata(&self.log).unwrap().len()
    }

    /// Unmounts the disk, and gives the record of what was written on it; `before`: what it held.
    pub(crate) fn stop(self, before: Vec<u8>) -> Record {
        let Self { log, device, export } = self;
        drop(device);
        drop(export);
        let entries = entries(&fs::read(log).unwrap());
        let flushes = (0..entries.len()).filter(|n| entries[*n].flush).collect();
        Record { bytes: before, entries, flushes }
    }
}

/// What reached the disk.
struct Entry {
    /// Where it stands in the record, in bytes: its end.
    end: u64,
    flush: bool,
    /// Where on the disk, in bytes.
    place: usize,
    data: Vec<u8>,
}

/// What a disk held, and all that was written on it.
pub(crate) struct Record {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    flushes: Vec<usize>,
}

/// A moment of a power cut: by the length of the record, what was flushed before it, and what was written.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) flushed: u64,
    pub(crate) written: u64,
}

impl Record {
    /// How much it has.
    pub(crate) fn text(&self) -> String {
        let flushes = self.flushes.len();
        format!("{} writes and {flushes} flushes of the disk", self.entries.len() - flushes)
    }

    /// Makes about so many disks that a power cut could leave, spread over all of the record, and has each looked at.
    pub(crate) fn disks(mut self, rounds: usize, chance: &mut Chance, mut look: impl FnMut(&[u8], Cut)) {
        // Of each interval between flushes as many disks as come to it.
        let each = rounds.div_ceil(self.flushes.len()).max(1);
        let step = self.flushes.len().div_ceil(rounds).max(1);
        let mut next = 0;
        for (number, flush) in self.flushes.iter().enumerate() {
            let pending = &self.entries[next..*flush];
            if number % step == step - 1 {
                let (before, after) =
                    (if next == 0 { 0 } else { self.entries[next - 1].end }, self.entries[*flush].end);
                for kind in 0..each {
                    let mut image = self.bytes.clone();
                    // Everything up to this flush, once; parts of it otherwise.
                    let whole = if each > 1 { kind == 0 } else { chance.below(4) == 0 };
                    for entry in pending {
                        lay(&mut image, entry, (!whole).then_some(&mut *chance));
                    }
                    look(&image, Cut { flushed: if whole { after } else { before }, written: after });
                }
            }
            for entry in pending {
                lay(&mut self.bytes, entry, None);
            }
            next = *flush + 1;
        }
    }
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

/// A write that was acknowledged, and the length of the record before and after it.
pub(crate) struct Acknowledged {
    pub(crate) write: Write,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// Compares what a cut left with what was acknowledged before: `listed` is every credential. What was lost or is wrong.
pub(crate) fn compare(acknowledged: &[Acknowledged], listed: &[Value], cut: Cut) -> Vec<String> {
    let mut keys: BTreeMap<(String, usize), (Option<String>, Possible)> = BTreeMap::new();
    for done in acknowledged.iter().filter(|done| done.before < cut.written) {
        let outcome = if done.after <= cut.flushed { Outcome::Done } else { Outcome::Unsure };
        let Write { namespace, save, id, state } = done.write.clone();
        let key = keys.entry((namespace, save)).or_insert_with(|| (None, Possible::new()));
        key.0 = key.0.take().or(id);
        key.1.attempted(state, outcome);
    }
    let mut found: HashMap<String, usize> = listed.iter().map(value).collect();
    let mut losses = Vec::new();
    for ((namespace, save), (id, mut possible)) in keys {
        let state = id.as_ref().and_then(|id| found.remove(id)).map_or(State::Absent, State::Holds);
        if let Err(loss) = possible.seen(state) {
            losses.push(format!("{namespace} save {save} {loss}"));
        }
    }
    losses.extend(found.into_keys().map(|id| format!("{id} is there, and nobody saved it or it was deleted")));
    losses
}

/// Id and number of a listed credential.
fn value(item: &Value) -> (String, usize) {
    let bucket = item["information"]["bucket"].as_str().unwrap_or_default();
    let number = bucket.strip_prefix("exports-").and_then(|number| number.parse().ok()).unwrap_or_default();
    (item["id"].as_str().expect("an id").to_owned(), number)
}
