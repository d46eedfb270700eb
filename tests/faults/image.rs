//! Images of disks: mounted through loop devices, and offered by QEMU's storage daemon, which can record what is written or
//! have it fail.

use crate::fault::run;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name of the node that is offered.
pub(crate) const EXPORTED: &str = "top";
const LIMIT: Duration = Duration::from_secs(30);

/// A new image in `directory` with ext4 on it, of so many MiB and with blocks of so many bytes.
pub(crate) fn formatted(directory: &Path, megabytes: u64, block: usize) -> PathBuf {
    let disk = directory.join("disk");
    File::create(&disk).unwrap().set_len(megabytes << 20).unwrap();
    let format = ["-q", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
    run(Command::new("mkfs.ext4").args(format).arg("-b").arg(block.to_string()).arg(&disk));
    disk
}

/// A disk, mounted through a loop device until it goes.
pub(crate) struct Mounted {
    device: String,
    place: PathBuf,
}

impl Mounted {
    /// Mounts an image of a disk.
    pub(crate) fn new(disk: &Path, place: &Path) -> Self {
        Self::try_new(disk, place).expect("the disk can be mounted")
    }

    /// The same, if it can be mounted.
    pub(crate) fn try_new(disk: &Path, place: &Path) -> Option<Self> {
        let device = run(Command::new("losetup").args(["-f", "--show"]).arg(disk)).trim().to_owned();
        let mounted = Self { device, place: place.to_owned() };
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "ext4"]).arg(&mounted.device).arg(place).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then_some(mounted)
    }
}

impl Mounted {
    /// Has each request to the device be one page at most. Of one that is larger, Linux 6.18 may report that all was written
    /// although a file below the loop device took a part and then failed.
    pub(crate) fn by_pages(self) -> Self {
        let name = self.device.trim_start_matches("/dev/");
        fs::write(format!("/sys/block/{name}/queue/max_sectors_kb"), "4").unwrap();
        self
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.place).stderr(Stdio::null()).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

/// A disk that a program of QEMU's offers as a file.
pub(crate) struct Export {
    child: Child,
    /// The file.
    pub(crate) path: PathBuf,
}

impl Export {
    /// Offers the last of these nodes, whose name is [`EXPORTED`], at `path`.
    pub(crate) fn start(nodes: &[String], path: &Path) -> Self {
        File::create(path).unwrap();
        let mut qemu = Command::new("qemu-storage-daemon");
        qemu.args(nodes.iter().flat_map(|node| ["--blockdev", node]));
        let path = path.to_owned();
        qemu.arg("--export")
            .arg(format!("type=fuse,id=export,node-name={EXPORTED},mountpoint={},writable=on", path.display()));
        let export = Self { child: qemu.spawn().unwrap(), path };
        let begun = Instant::now();
        while fs::metadata(&export.path).unwrap().len() == 0 {
            assert!(begun.elapsed() < LIMIT, "qemu-storage-daemon exports nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        export
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // It completes what it writes before it ends.
        let id = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Why there can be no such disks here, if there cannot.
pub(crate) fn impossible() -> Option<String> {
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
        Err(_) => Some("qemu-storage-daemon is not installed (Debian: qemu-utils)".to_owned()),
    }
}
