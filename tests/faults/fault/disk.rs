//! The disk becomes full under load, or becomes read-only.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use rustix::process::getuid;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use vault_tests::Vault;
use vault_tests::disk::{fill, mount};

/// Time limit until writes succeed again.
const HEALED: Duration = Duration::from_secs(5);

/// A small mounted file system.
pub(super) struct Disk {
    place: TempDir,
    /// The loop device, if the file system is on an image.
    device: Option<String>,
}

impl Disk {
    /// Mounts a file system in memory.
    fn in_memory(megabytes: usize) -> Self {
        let place = tempfile::tempdir().unwrap();
        let options = format!("size={megabytes}m,mode=0700");
        mount(place.path(), &options);
        Self { place, device: None }
    }

    /// Mounts ext4 on an image. It becomes read-only after an error.
    fn ext4(ground: &Ground<'_>, megabytes: u64) -> Self {
        let place = tempfile::tempdir_in(&ground.options.shared.dir).unwrap();
        let image = place.path().join("image");
        File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-e", "remount-ro"]).arg(&image));
        let device = run(Command::new("losetup").args(["-f", "--show"]).arg(&image)).trim().to_owned();
        let disk = Self { place, device: Some(device) };
        fs::create_dir(disk.path()).unwrap();
        disk.mount();
        disk
    }

    /// Returns the mount point.
    fn path(&self) -> PathBuf {
        match self.device {
            Some(_) => self.place.path().join("mounted"),
            None => self.place.path().to_owned(),
        }
    }

    fn mount(&self) {
        run(Command::new("mount").args(["-t", "ext4"]).arg(self.device.as_ref().unwrap()).arg(self.path()));
    }

    /// Triggers an error in the file system, which makes it read-only.
    fn fail(&self) {
        let name = self.device.as_ref().unwrap().trim_start_matches("/dev/");
        fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "1").unwrap();
    }

    /// Repairs the file system as an operator would, and mounts it again.
    fn repair(&self) {
        run(Command::new("umount").arg(self.path()));
        let status = Command::new("fsck.ext4").arg("-fy").arg(self.device.as_ref().unwrap()).output().unwrap().status;
        assert!(status.code().is_some_and(|code| code < 4), "fsck: {status}");
        self.mount();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
        if let Some(device) = &self.device {
            let _ = Command::new("losetup").args(["-d", device]).status();
        }
    }
}

/// Runs a command that must succeed, and returns its standard output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The disk becomes full under load, and then has free space again.
pub(super) fn full(ground: &Ground<'_>) -> Report {
    if !getuid().is_root() {
        return Report::skipped("disk-full", ground.database, "only root can mount a file system to fill");
    }
    let disk = Disk::in_memory(256); // with room for the rows and the log of many rounds
    let mut rig = Rig::of("disk-full", ground, Vault::absent_in(&disk.path(), None));
    let mut healed = Vec::new();
    for _ in 0..ground.options.rounds(20) {
        let filler = disk.path().join("filler");
        rig.work(|| {
            std::thread::sleep(Duration::from_millis(200));
            fill(&filler);
            std::thread::sleep(Duration::from_secs(1));
        });
        if !rig.can_read() {
            rig.report.losses.push("lists were not answered on the full disk".to_owned());
        }
        fs::remove_file(filler).unwrap();
        let again = rig.wait_until_it_writes();
        if again > HEALED {
            rig.report.losses.push(format!("writes needed {again:?} after there was space"));
        }
        healed.push(again);
        rig.check();
    }
    rig.report.times("from space to the next write", healed);
    rig.finish()
}

/// The file system below the vault reports an error under load and becomes read-only, which is the default on Linux. An
/// operator repairs it. Acknowledged writes of that moment that are lost are counted but do not fail the campaign: ext4
/// may report a file as synced although it has dropped the transaction of the journal (tests/faults/README.md).
pub(super) fn read_only(ground: &Ground<'_>) -> Report {
    if !getuid().is_root() {
        return Report::skipped("read-only", ground.database, "only root can mount a file system");
    }
    let disk = Disk::ext4(ground, 64);
    let mut rig = Rig::of("read-only", ground, Vault::absent_in(&disk.path(), None));
    let (mut ended, mut starts) = (0_usize, Vec::new());
    for _ in 0..ground.options.rounds(10) {
        rig.work(|| {
            std::thread::sleep(Duration::from_millis(300));
            disk.fail();
            std::thread::sleep(Duration::from_secs(1));
        });
        let mut server = rig.server.take().expect("its server runs");
        ended += usize::from(!server.is_alive());
        if server.is_alive() && rig.try_write().0 {
            rig.report.losses.push("a write to a read-only disk was acknowledged".to_owned());
        }
        server.ask_to_stop();
        server.wait();
        disk.repair();
        starts.push(rig.serve());
        rig.check();
    }
    rig.report.figure("servers that stopped", ended);
    rig.report.times("from start to ready", starts);
    let mut report = rig.finish();
    report.count_lost("in the moment of the error");
    report
}
