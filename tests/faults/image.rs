//! Disk images, mounted through loop devices and exported by QEMU's storage daemon, which can record writes or make
//! them fail.

use crate::fault::run;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name of the exported node.
pub(crate) const EXPORTED: &str = "top";
const LIMIT: Duration = Duration::from_secs(30);

/// Creates an image in `directory` with ext4, with its size in MiB and the block size in bytes.
pub(crate) fn formatted(directory: &Path, megabytes: u64, block: usize) -> PathBuf {
    let disk = directory.join("disk");
    File::create(&disk).unwrap().set_len(megabytes << 20).unwrap();
    let format = ["-q", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
    run(Command::new("mkfs.ext4").args(format).arg("-b").arg(block.to_string()).arg(&disk));
    disk
}

/// A disk that is mounted through a loop device. Unmounted on drop.
pub(crate) struct Mounted {
    device: String,
    place: PathBuf,
}

impl Mounted {
    /// Mounts a disk image.
    pub(crate) fn new(disk: &Path, place: &Path) -> Self {
        Self::try_new(disk, place).expect("the disk can be mounted")
    }

    /// Mounts a disk image, if possible.
    pub(crate) fn try_new(disk: &Path, place: &Path) -> Option<Self> {
        let device = run(Command::new("losetup").args(["-f", "--show"]).arg(disk)).trim().to_owned();
        let mounted = Self { device, place: place.to_owned() };
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "ext4"]).arg(&mounted.device).arg(place).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then_some(mounted)
    }
}

impl Mounted {
    /// Limits each request to the device to one page. For a larger request, Linux 6.18 may report a complete write
    /// although a file below the loop device stored only a part before it failed.
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

/// A disk that QEMU's storage daemon exports as a file.
pub(crate) struct Export {
    child: Child,
    /// The path of the file.
    pub(crate) path: PathBuf,
}

impl Export {
    /// Exports the last of these nodes, which has the name [`EXPORTED`], at `path`.
    pub(crate) fn start(nodes: &[String], path: &Path) -> Self {
        File::create(path).unwrap();
        let mut qemu = Command::new("qemu-storage-daemon");
        qemu.args(nodes.iter().flat_map(|node| ["--blockdev", node]));
        let path = path.to_owned();
        qemu.arg("--export")
            .arg(format!("type=fuse,id=export,node-name={EXPORTED},mountpoint={},writable=on", path.display()));
        let export = Self { child: qemu.spawn().unwrap(), path };
        let started = Instant::now();
        while fs::metadata(&export.path).unwrap().len() == 0 {
            assert!(started.elapsed() < LIMIT, "qemu-storage-daemon exports nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        export
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // QEMU completes pending writes before it exits.
        let id = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Returns the reason why such disks cannot be used here.
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
