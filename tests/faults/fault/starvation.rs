//! A long read prevents a restart of the write-ahead log while clients write.

use super::Ground;
use super::lock::Holder;
use crate::report::Report;
use crate::rig::Rig;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Duration of the read, and of the read in a campaign with `--rounds`.
const HELD: Duration = Duration::from_secs(60);
const HELD_SHORTLY: Duration = Duration::from_secs(6);
/// Time limit for the restart of the log after the read.
const HEALED: Duration = Duration::from_secs(5);
/// Maximum size of the log that the program keeps, and a write beyond it.
const LOG_LIMIT: u64 = 65 << 20;
/// Time limit of requests during the read.
const LONGEST: Duration = Duration::from_secs(5);

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let held = if ground.options.rounds.is_some() { HELD_SHORTLY } else { HELD };
    let mut rig = Rig::new("long-read", ground);
    let log = rig.vault.data_dir().join("orgvault.db-wal");
    let size = || fs::metadata(&log).map_or(0, |log| log.len());
    let (mut healed, mut largest, mut left) = (Vec::new(), 0, 0);
    for _ in 0..ground.options.rounds(1) {
        rig.work(|| sleep(Duration::from_millis(500)));
        let reader = Holder::reading(&rig);
        let started = generation(&log);
        rig.work(|| sleep(held));
        if generation(&log) != started {
            rig.report.losses.push("the log started over under the read, so nothing was tested".to_owned());
        }
        largest = largest.max(size());
        drop(reader);
        let again = rig.work(|| {
            let freed = Instant::now();
            while generation(&log) == started && freed.elapsed() < HEALED {
                sleep(Duration::from_millis(10));
            }
            let again = freed.elapsed();
            sleep(Duration::from_secs(2)); // the program may take as long to check and truncate the log
            again
        });
        left = left.max(size());
        if again >= HEALED {
            rig.report.losses.push(format!("the log did not start over within {HEALED:?} after the read"));
        }
        if size() > LOG_LIMIT {
            rig.report.losses.push(format!("the log still has {} bytes after the read", size()));
        }
        healed.push(again);
        rig.check();
    }
    rig.report.figure("the read lasted", format!("{} s", held.as_secs()));
    rig.report.figure(
        "the write-ahead log",
        format!("{} MiB at the end of the read, then {} MiB", largest >> 20, left >> 20),
    );
    rig.report.times("from its end until the log starts over", healed);
    rig.report.slowest_answer(LONGEST);
    rig.finish()
}

/// Returns the checkpoint sequence number in the header of the log, which counts its restarts.
fn generation(log: &Path) -> [u8; 4] {
    let mut number = [0; 4];
    let _ = fs::File::open(log).and_then(|log| log.read_exact_at(&mut number, 12)); // a truncated log has no header
    number
}
