//! Detection of disk encryption. On Linux, `/sys/dev/block` shows dm-crypt (LUKS).

use rustix::fs::{major, minor};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Maximum number of stacked devices. More indicate a loop.
const MOST_LAYERS: usize = 16;

/// The encryption of the disk below a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiskEncryption {
    /// Every path to a disk contains dm-crypt.
    Encrypted {
        /// Topmost device.
        device: String,
    },
    /// A device without dm-crypt. Hardware or a provider may still encrypt the data, which is not visible here.
    NotSeen {
        /// Path of the device.
        device: String,
    },
    /// The file system has no local block device.
    Unknown {
        /// Description of the file system.
        place: String,
    },
}

impl fmt::Display for DiskEncryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encrypted { device } => write!(f, "{device} is encrypted by dm-crypt"),
            Self::NotSeen { device } => write!(f, "{device} is not encrypted by dm-crypt"),
            Self::Unknown { place } => write!(f, "it is on {place}, whose encryption cannot be seen"),
        }
    }
}

/// The space of the file system below a file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// What unprivileged users can still write.
    pub(crate) free: u64,
    /// All of it.
    pub(crate) size: u64,
}

impl Space {
    /// The space below `path`, which must exist.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Self { free: bytes(found.f_bavail), size: bytes(found.f_blocks) })
    }

    /// Less than a tenth is free.
    pub(crate) const fn is_low(self) -> bool {
        self.free < self.size / 10
    }
}

/// Returns the encryption of the disk below `path`, which must exist.
pub(crate) fn of(path: &Path) -> io::Result<DiskEncryption> {
    let device = fs::metadata(path)?.dev();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    below(Path::new("/sys/dev/block"), (major(device), minor(device)), &mounts)
}

/// Returns the encryption of the block device `device`.
pub(crate) fn of_device(device: &Path) -> io::Result<DiskEncryption> {
    let numbers = fs::metadata(device)?.rdev();
    below(Path::new("/sys/dev/block"), (major(numbers), minor(numbers)), "")
}

/// Returns the encryption of the device with these numbers. `mounts` is the mount table, `sys` the directory of block
/// devices.
fn below(sys: &Path, numbers: (u32, u32), mounts: &str) -> io::Result<DiskEncryption> {
    let known = sys.join(format!("{}:{}", numbers.0, numbers.1));
    if known.exists() {
        return layers(&known, MOST_LAYERS);
    }
    // Some file systems have anonymous device numbers. The mount table contains their source device.
    let Some((kind, source)) = mounted(mounts, numbers) else {
        return Ok(DiskEncryption::Unknown { place: "an unknown file system".to_owned() });
    };
    let device = Path::new(source);
    match fs::metadata(device) {
        Ok(found) if device.starts_with("/dev") => {
            let known = sys.join(format!("{}:{}", major(found.rdev()), minor(found.rdev())));
            layers(&known, MOST_LAYERS)
        }
        _ => Ok(DiskEncryption::Unknown { place: format!("{kind} ({source})") }),
    }
}

/// Returns type and source of the file system that is mounted with these device numbers (proc_pid_mountinfo(5)).
fn mounted(mounts: &str, (major, minor): (u32, u32)) -> Option<(&str, &str)> {
    let numbers = format!("{major}:{minor}");
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&numbers))?;
    let mut behind = line.split_once(" - ")?.1.split(' ');
    Some((behind.next()?, behind.next()?))
}

/// Follows a device down to dm-crypt or to the disk.
fn layers(device: &Path, left: usize) -> io::Result<DiskEncryption> {
    let device = device.canonicalize()?;
    let name = device.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
    let name = format!("/dev/{name}");
    let mapped = fs::read_to_string(device.join("dm/uuid")).is_ok_and(|uuid| uuid.starts_with("CRYPT-"));
    if mapped {
        return Ok(DiskEncryption::Encrypted { device: name });
    }
    let Some(left) = left.checked_sub(1) else {
        return Ok(DiskEncryption::Unknown { place: format!("too many devices below {name}") });
    };
    let mut lower = parts(&device.join("slaves"))?;
    if lower.is_empty() && device.join("partition").exists() {
        lower.extend(device.parent().map(Path::to_owned));
    }
    // A volume that spans several disks is encrypted only if all of them are.
    for part in &lower {
        let found = layers(part, left)?;
        if !matches!(found, DiskEncryption::Encrypted { .. }) {
            return Ok(found);
        }
    }
    match lower.is_empty() {
        true => Ok(DiskEncryption::NotSeen { device: name }),
        false => Ok(DiskEncryption::Encrypted { device: name }),
    }
}

fn parts(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A copy of the kernel's block device tree: `devices` below `block`, linked by their numbers.
    struct Devices(TempDir);

    impl Devices {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("numbers")).unwrap();
            Self(root)
        }

        fn add(&self, numbers: &str, path: &str, uuid: Option<&str>, on: &[&str]) -> &Self {
            let device = self.0.path().join("block").join(path);
            fs::create_dir_all(device.join("slaves")).unwrap();
            if let Some(uuid) = uuid {
                fs::create_dir(device.join("dm")).unwrap();
                fs::write(device.join("dm/uuid"), uuid).unwrap();
            }
            if path.contains('/') {
                fs::write(device.join("partition"), "1").unwrap();
            }
            for below in on {
                let name = Path::new(below).file_name().unwrap();
                symlink(self.0.path().join("block").join(below), device.join("slaves").join(name)).unwrap();
            }
            symlink(device, self.0.path().join("numbers").join(numbers)).unwrap();
            self
        }

        fn below(&self, numbers: (u32, u32), mounts: &str) -> DiskEncryption {
            below(&self.0.path().join("numbers"), numbers, mounts).unwrap()
        }
    }

    fn encrypted(device: &str) -> DiskEncryption {
        DiskEncryption::Encrypted { device: device.to_owned() }
    }

    fn not_seen(device: &str) -> DiskEncryption {
        DiskEncryption::NotSeen { device: device.to_owned() }
    }

    #[test]
    fn volume_is_followed_down_to_dm_crypt() {
        let devices = Devices::new();
        devices
            .add("8:0", "sda", None, &[])
            .add("8:1", "sda/sda1", None, &[])
            .add("253:0", "dm-0", Some("CRYPT-LUKS2-0123-vault"), &["sda/sda1"])
            .add("253:1", "dm-1", Some("LVM-abc"), &["dm-0"])
            .add("253:2", "dm-2", Some("LVM-def"), &["sda"]);
        assert_eq!(devices.below((253, 0), ""), encrypted("/dev/dm-0"));
        assert_eq!(devices.below((253, 1), ""), encrypted("/dev/dm-1"));
        for (numbers, device) in [((8, 0), "/dev/sda"), ((8, 1), "/dev/sda"), ((253, 2), "/dev/sda")] {
            assert_eq!(devices.below(numbers, ""), not_seen(device), "{numbers:?}");
        }
    }

    #[test]
    fn every_disk_of_a_volume_counts() {
        let devices = Devices::new();
        devices
            .add("8:0", "sda", None, &[])
            .add("8:16", "sdb", None, &[])
            .add("253:0", "dm-0", Some("CRYPT-LUKS2-a"), &["sda"])
            .add("253:1", "dm-1", Some("CRYPT-LUKS2-b"), &["sdb"])
            .add("9:0", "md0", None, &["dm-0", "dm-1"])
            .add("9:1", "md1", None, &["dm-0", "sdb"]);
        assert_eq!(devices.below((9, 0), ""), encrypted("/dev/md0"));
        assert_eq!(devices.below((9, 1), ""), not_seen("/dev/sdb"));
    }

    #[test]
    fn cyclic_devices_are_not_followed() {
        let devices = Devices::new();
        fs::create_dir_all(devices.0.path().join("block/dm-1")).unwrap();
        devices.add("253:0", "dm-0", Some("LVM-a"), &["dm-1"]).add("253:1", "dm-1", Some("LVM-b"), &["dm-0"]);
        assert!(matches!(devices.below((253, 0), ""), DiskEncryption::Unknown { .. }));
    }

    #[test]
    fn file_systems_without_a_device_are_reported() {
        let mounts =
            "22 1 0:21 / / rw - overlay overlay rw,lowerdir=/a\n23 22 0:22 / /tmp rw shared:2 - tmpfs tmpfs rw\n";
        let place = |numbers| Devices::new().below(numbers, mounts);
        assert_eq!(place((0, 21)), DiskEncryption::Unknown { place: "overlay (overlay)".to_owned() });
        assert_eq!(place((0, 22)), DiskEncryption::Unknown { place: "tmpfs (tmpfs)".to_owned() });
        assert_eq!(place((0, 99)), DiskEncryption::Unknown { place: "an unknown file system".to_owned() });
    }

    #[test]
    fn doctor_checks_disk_of_host() {
        of(Path::new("/")).unwrap();
    }
}
