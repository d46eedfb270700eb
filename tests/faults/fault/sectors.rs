//! Sectors of the disk with the database or its write-ahead log cannot be read or written (QEMU's `blkdebug` below a
//! loop device with ext4), either once or until the disk is replaced. The page cache is empty at the start, so reads
//! reach the disk. A server that exits is started again on the same disk, as systemd does. At the end the
//! disk is mounted again, which discards the page cache.

use super::Ground;
use super::disk::run;
use super::syscalls::wait;
use crate::image::{self, EXPORTED, Export, Mounted};
use crate::report::Report;
use crate::rig::Rig;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use vault_tests::Vault;

/// Size of the disk, in MiB.
const SIZE: u64 = 64;
/// Number of failing sectors.
const BAD: usize = 24;
/// Time for which clients work on a failing disk.
const WORK: Duration = Duration::from_millis(700);

/// The results of the rounds.
#[derive(Default)]
struct Count {
    refused_start: usize,
    refused_read: usize,
    ended: usize,
}

pub(super) fn bad(ground: &Ground<'_>) -> Report {
    if let Some(why) = image::impossible() {
        return Report::skipped("bad-sectors", ground.database, &why);
    }
    let place = tempfile::tempdir_in(&ground.options.log_dir).unwrap();
    let disk = image::formatted(place.path(), SIZE, 4096);
    let (mounted, export) = (place.path().join("mounted"), place.path().join("export"));
    std::fs::create_dir(&mounted).unwrap();
    let mut sound = Mounted::new(&disk, &mounted);
    let mut rig = Rig::of("bad-sectors", ground, Vault::absent_in(&mounted, None));
    let (mut random, mut count) = (ground.random(), Count::default());
    for _ in 0..ground.options.rounds(100) {
        rig.work(|| std::thread::sleep(Duration::from_millis(200)));
        rig.kill(); // so that a log remains
        let file = if random.below(2) == 0 { "orgvault.db" } else { "orgvault.db-wal" };
        let sectors = sectors(&rig.vault.data_dir().join(file));
        let (kind, once) = (["read", "write"][random.below(2)], ["on", "off"][random.below(2)]);
        let rule = |number: usize| {
            let sector = sectors[random.below(sectors.len())];
            format!(
                ",inject-error.{number}.event=none,inject-error.{number}.errno=5,inject-error.{number}.iotype={kind},\
                 inject-error.{number}.once={once},inject-error.{number}.sector={sector}"
            )
        };
        let rules: String = (0..BAD).map(rule).collect();
        drop(sound);
        let nodes = [
            format!("driver=file,node-name=disk,filename={}", disk.display()),
            format!("driver=blkdebug,node-name={EXPORTED},image=disk{rules}"),
        ];
        let failing = Export::start(&nodes, &export);
        let device = Mounted::new(&failing.path, &mounted).by_pages();
        live(&mut rig, &mut count);
        drop(device);
        drop(failing);
        sound = Mounted::new(&disk, &mounted);
        rig.serve();
        rig.check();
        rig.check_stored();
    }
    // Reads of failing sectors get a response with status 500.
    let losses = std::mem::take(&mut rig.report.losses);
    rig.report.losses = losses.into_iter().filter(|loss| !loss.contains(": 500: ")).collect();
    rig.report.figure("the server refused to start", count.refused_start);
    rig.report.figure("some reads were refused", count.refused_read);
    rig.report.figure("the server ended", count.ended);
    let report = rig.finish();
    drop(sound);
    report
}

/// Runs the vault on the failing disk with clients, and once more if the server exits.
fn live(rig: &mut Rig, count: &mut Count) {
    let mut whole = true;
    for is_first in [true, false] {
        let mut server = rig.spawn_by(None);
        if !wait(&mut server) {
            count.refused_start += 1;
            return;
        }
        rig.server = Some(server);
        if is_first {
            whole = rig.reads_rightly().unwrap_or_else(|wrong| {
                rig.report.losses.push(wrong);
                false
            });
        }
        rig.work(|| std::thread::sleep(WORK));
        let mut server = rig.server.take().expect("its server runs");
        let lives = server.is_alive();
        server.kill();
        if lives {
            break;
        }
        count.ended += 1;
    }
    count.refused_read += usize::from(!whole);
}

/// Returns the sectors of a file.
fn sectors(file: &Path) -> Vec<usize> {
    let printed = run(Command::new("filefrag").args(["-s", "-v", "-b512"]).arg(file));
    // "   0:        0..     255:      34816..     35071:    256:   last,eof"
    let extent = |line: &str| {
        let mut parts = line.split(':').skip(2);
        let first = parts.next()?.split("..").next()?.trim().parse::<usize>().ok()?;
        let length = parts.next()?.trim().parse::<usize>().ok()?;
        Some(first..first + length)
    };
    printed.lines().filter_map(extent).flatten().collect()
}
