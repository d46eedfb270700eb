//! The disk becomes full or read-only, its sectors fail, or its bytes change.

use super::{Ground, Outcome, possible, run};
use crate::image::{self, EXPORTED, Export, Mounted};
use crate::rig::{Rig, wait};
use rustix::process::getuid;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use vault_tests::Vault;
use vault_tests::disk::{fill, mount};

/// The disk becomes full under load, and then has free space again.
pub(super) fn full(ground: &Ground<'_>) -> Outcome {
    only_root()?;
    let place = tempfile::tempdir().unwrap();
    mount(place.path(), "size=256m,mode=0700"); // with room for the rows and the log of many rounds
    let mut rig = Rig::of(ground, Vault::absent_in(place.path(), None));
    let filler = place.path().join("filler");
    rig.rounds(20, |rig, _| {
        rig.work(|| {
            thread::sleep(Duration::from_millis(200));
            fill(&filler);
            thread::sleep(Duration::from_secs(1));
        });
        if !rig.can_read() {
            rig.lose("lists were not answered on the full disk");
        }
        fs::remove_file(&filler).unwrap();
        rig.heal();
    });
    let report = rig.finish();
    let _ = Command::new("umount").arg("-l").arg(place.path()).status();
    report
}

fn only_root() -> Result<(), String> {
    possible((!getuid().is_root()).then(|| "only root can mount a file system".to_owned()))
}

/// The file system below the vault reports an error under load and becomes read-only, which is the default on Linux. An
/// operator repairs it. Acknowledged writes of that moment that are lost are counted but do not fail the campaign: ext4
/// may report a file as synced although it has dropped the transaction of the journal (tests/faults/README.md).
pub(super) fn read_only(ground: &Ground<'_>) -> Outcome {
    only_root()?;
    let disk = Ext4::new(&ground.options.shared.dir);
    let mut rig = Rig::of(ground, Vault::absent_in(&disk.mounted(), None));
    let mut ended = 0;
    rig.rounds(10, |rig, _| {
        rig.work(|| {
            thread::sleep(Duration::from_millis(300));
            disk.fail();
            thread::sleep(Duration::from_secs(1));
        });
        if !rig.is_alive() {
            ended += 1;
        } else if rig.try_write() {
            rig.lose("a write to a read-only disk was acknowledged");
        }
        rig.stop();
        disk.repair();
        rig.serve();
    });
    rig.report.figure("servers that stopped", ended);
    let mut report = rig.finish()?;
    report.count_lost("in the moment of the error");
    Ok(report)
}

/// A file system on a loop device. It becomes read-only after an error.
struct Ext4 {
    place: TempDir,
    device: String,
}

impl Ext4 {
    fn new(directory: &Path) -> Self {
        let place = tempfile::tempdir_in(directory).unwrap();
        let image = place.path().join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-e", "remount-ro"]).arg(&image));
        let device = run(Command::new("losetup").args(["-f", "--show"]).arg(&image)).trim().to_owned();
        let disk = Self { place, device };
        fs::create_dir(disk.mounted()).unwrap();
        disk.mount();
        disk
    }

    fn mounted(&self) -> PathBuf {
        self.place.path().join("mounted")
    }

    fn mount(&self) {
        run(Command::new("mount").args(["-t", "ext4", &self.device]).arg(self.mounted()));
    }

    /// Triggers an error in the file system.
    fn fail(&self) {
        let name = self.device.trim_start_matches("/dev/");
        fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "1").unwrap();
    }

    /// Repairs the file system as an operator would, and mounts it again.
    fn repair(&self) {
        run(Command::new("umount").arg(self.mounted()));
        let status = Command::new("fsck.ext4").args(["-fy", &self.device]).output().unwrap().status;
        assert!(status.code().is_some_and(|code| code < 4), "fsck: {status}");
        self.mount();
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.mounted()).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

/// Sectors of the disk with the database or its write-ahead log cannot be read or written (QEMU's `blkdebug` below a
/// loop device with ext4), either once or until the disk is replaced. The page cache is empty at the start, so reads
/// reach the disk. At the end the disk is mounted again, which discards the page cache.
pub(super) fn bad_sectors(ground: &Ground<'_>) -> Outcome {
    possible(image::impossible())?;
    let place = tempfile::tempdir_in(&ground.options.log_dir).unwrap();
    let disk = image::formatted(place.path(), 64, 4096);
    let (mounted, export) = (place.path().join("mounted"), place.path().join("export"));
    fs::create_dir(&mounted).unwrap();
    let mut sound = Some(Mounted::new(&disk, &mounted));
    let mut rig = Rig::of(ground, Vault::absent_in(&mounted, None));
    let mut count = [0; 3];
    rig.rounds(100, |rig, _| {
        rig.work(wait(200));
        rig.kill(); // so that a log remains
        let file = ["orgvault.db", "orgvault.db-wal"][rig.random.below(2)];
        let sectors = sectors(&rig.vault.data_dir().join(file));
        let (kind, once) = (["read", "write"][rig.random.below(2)], ["on", "off"][rig.random.below(2)]);
        let mut rule = |number: usize| {
            let sector = sectors[rig.random.below(sectors.len())];
            format!(
                ",inject-error.{number}.event=none,inject-error.{number}.errno=5,inject-error.{number}.iotype={kind},\
                 inject-error.{number}.once={once},inject-error.{number}.sector={sector}"
            )
        };
        let rules: String = (0..24).map(&mut rule).collect();
        drop(sound.take());
        let nodes = [
            format!("driver=file,node-name=disk,filename={}", disk.display()),
            format!("driver=blkdebug,node-name={EXPORTED},image=disk{rules}"),
        ];
        let failing = Export::start(&nodes, &export);
        let device = Mounted::new(&failing.path, &mounted).by_pages();
        live_on_bad_sectors(rig, &mut count);
        drop(device);
        drop(failing);
        sound = Some(Mounted::new(&disk, &mounted));
        rig.serve();
        rig.check_stored();
    });
    // Reads of failing sectors get a response with status 500.
    rig.report.losses.retain(|loss| !loss.contains(": 500: "));
    let [refused_start, refused_read, ended] = count;
    rig.report.figure("the server refused to start", refused_start);
    rig.report.figure("some reads were refused", refused_read);
    rig.report.figure("the server ended", ended);
    let report = rig.finish();
    drop(sound);
    report
}

/// Runs the vault on the failing disk with clients, and once more if the server exits, as systemd does. Counts refused
/// starts, refused reads and exits.
fn live_on_bad_sectors(rig: &mut Rig<'_>, [refused_start, refused_read, ended]: &mut [usize; 3]) {
    for is_first in [true, false] {
        if !rig.try_serve() {
            *refused_start += 1;
            return;
        }
        if is_first && !rig.reads_rightly() {
            *refused_read += 1;
        }
        rig.work(wait(700));
        let lives = rig.is_alive();
        rig.kill();
        if lives {
            return;
        }
        *ended += 1;
    }
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

/// Up to 64 bits of the stored file change. The service must reject the damaged data and never return wrong data.
pub(super) fn bit_rot(ground: &Ground<'_>) -> Outcome {
    let mut rig = Rig::new(ground);
    rig.work(wait(500));
    rig.check();
    let file = rig.vault.data_dir().join("orgvault.db");
    // A server on a damaged file may record a newer state in the anchor, and would then reject the intact file as an
    // earlier one.
    let anchor = rig.vault.data_dir().join("orgvault.anchor");
    let (mut refused_start, mut refused_read, mut whole) = (0, 0, 0);
    for _ in 0..ground.options.rounds(200) {
        rig.stop();
        let (sound, anchored) = (fs::read(&file).unwrap(), fs::read(&anchor).unwrap());
        let mut rotten = sound.clone();
        for _ in 0..=rig.random.below(64) {
            let place = rig.random.below(rotten.len());
            rotten[place] ^= 1 << rig.random.below(8);
        }
        fs::write(&file, rotten).unwrap();
        if rig.try_serve() {
            if rig.reads_rightly() {
                whole += 1
            } else {
                refused_read += 1
            }
            rig.kill();
        } else {
            refused_start += 1;
        }
        for companion in ["orgvault.db-wal", "orgvault.db-shm"] {
            let _ = fs::remove_file(rig.vault.data_dir().join(companion));
        }
        fs::write(&file, sound).unwrap();
        fs::write(&anchor, anchored).unwrap();
        rig.serve();
        rig.report.rounds += 1;
    }
    rig.check();
    rig.report.figure("the server refused to start", refused_start);
    rig.report.figure("some reads were refused", refused_read);
    rig.report.figure("all that was read was right", whole);
    rig.finish()
}
