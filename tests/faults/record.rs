//! Records every write and flush of a disk (QEMU's `blklogwrites`, below a loop device), and derives the disks that a
//! power cut can leave: all writes up to a flush, and all writes up to a flush with a random part of the later writes,
//! in sectors of 512 bytes.
//!
//! The writes behind an acknowledgement were flushed before the response, so the length of the record at that moment
//! defines the data that a disk must contain.

use crate::image::{EXPORTED, Export, Mounted};
use crate::ledger::{Outcome, Possible, State};
use crate::worker::Write;
use serde_json::Value;
use simulated_disk::random::Random;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Size of a sector of the record and of the disk, in bytes.
const SECTOR: usize = 512;
const FLUSH: u64 = 1;
const DISCARD: u64 = 4;

/// A mounted disk that is being recorded.
pub(crate) struct Recorder {
    log: PathBuf,
    // Unmounted before the removal of its file.
    device: Mounted,
    export: Export,
}

impl Recorder {
    /// Mounts `disk` at `mounted` and records its writes in a file next to it.
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

    /// Returns the length of the record.
    pub(crate) fn length(&self) -> u64 {
        fs::metadata(&self.log).unwrap().len()
    }

    /// Unmounts the disk, whose content was `before`, and returns the record of its writes.
    pub(crate) fn stop(self, before: Vec<u8>) -> Record {
        let Self { log, device, export } = self;
        drop(device);
        drop(export);
        let entries = entries(&fs::read(log).unwrap());
        let flushes = (0..entries.len()).filter(|n| entries[*n].flush).collect();
        Record { bytes: before, entries, flushes }
    }
}

/// A write or a flush of the disk.
struct Entry {
    /// End of the entry in the record, in bytes.
    end: u64,
    flush: bool,
    /// Offset on the disk, in bytes.
    place: usize,
    data: Vec<u8>,
}

/// The original content of a disk and all writes to it.
pub(crate) struct Record {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    flushes: Vec<usize>,
}

/// A moment of a power cut: the lengths of the record at the last flush and at the last write before it.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) flushed: u64,
    pub(crate) written: u64,
}

impl Record {
    /// Describes the size of the record.
    pub(crate) fn text(&self) -> String {
        let flushes = self.flushes.len();
        format!("{} writes and {flushes} flushes of the disk", self.entries.len() - flushes)
    }

    /// Derives about `rounds` disks, spread over the whole record, and calls `look` for each.
    pub(crate) fn disks(mut self, rounds: usize, random: &mut Random, mut look: impl FnMut(&[u8], Cut)) {
        // The same number of disks for each interval between flushes.
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
                    // All writes up to this flush, once. Otherwise a random part of them.
                    let whole = if each > 1 { kind == 0 } else { random.below(4) == 0 };
                    for entry in pending {
                        lay(&mut image, entry, (!whole).then_some(&mut *random));
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

/// Applies a write to the disk: completely, or at random completely, some sectors or not at all.
fn lay(image: &mut [u8], entry: &Entry, random: Option<&mut Random>) {
    let Some(random) = random else {
        image[entry.place..entry.place + entry.data.len()].copy_from_slice(&entry.data);
        return;
    };
    let how = random.below(4);
    for (number, sector) in entry.data.chunks(SECTOR).enumerate() {
        if how < 2 || how == 2 && random.below(2) == 0 {
            let place = entry.place + number * SECTOR;
            image[place..place + sector.len()].copy_from_slice(sector);
        }
    }
}

/// Parses a record: a header sector, then the entries, each a sector followed by the written data.
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

/// An acknowledged write, and the length of the record before and after it.
pub(crate) struct Acknowledged {
    pub(crate) write: Write,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// Compares `listed`, all credentials after a cut, with the writes acknowledged before it. Returns losses and wrong
/// data.
pub(crate) fn compare(acknowledged: &[Acknowledged], listed: &[Value], cut: Cut) -> Vec<String> {
    let mut keys: BTreeMap<(String, usize), (Option<String>, Possible)> = BTreeMap::new();
    for done in acknowledged.iter().filter(|done| done.before < cut.written) {
        let outcome = if done.after <= cut.flushed { Outcome::Done } else { Outcome::Indeterminate };
        let Write { namespace, save, id, state } = done.write.clone();
        let key = keys.entry((namespace, save)).or_insert_with(|| (None, Possible::new()));
        key.0 = key.0.take().or(id);
        key.1.attempted(state, outcome);
    }
    let mut found: HashMap<String, usize> = listed.iter().map(value).collect();
    let mut losses = Vec::new();
    for ((namespace, save), (id, mut possible)) in keys {
        let state = id.as_ref().and_then(|id| found.remove(id)).map_or(State::Absent, State::Stored);
        if let Err(loss) = possible.seen(state) {
            losses.push(format!("{namespace} save {save} {loss}"));
        }
    }
    losses.extend(found.into_keys().map(|id| format!("{id} exists, but was never saved or was deleted")));
    losses
}

/// Returns the ID and the number of a listed credential.
fn value(item: &Value) -> (String, usize) {
    let bucket = item["information"]["bucket"].as_str().unwrap_or_default();
    let number = bucket.strip_prefix("exports-").and_then(|number| number.parse().ok()).unwrap_or_default();
    (item["id"].as_str().expect("an id").to_owned(), number)
}
