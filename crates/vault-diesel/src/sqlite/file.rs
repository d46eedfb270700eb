//! Location and creation of the database file. A new file has mode 0600.

use super::settings::OpenError;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// File systems without the locks and the shared memory that several connections need, by magic number (`statfs(2)`).
/// FUSE is included because the file system behind it is unknown.
const NETWORK_FILE_SYSTEMS: [(u64, &str); 14] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
];

/// Creates the file if requested, and returns its absolute path as text. Rejects network file systems.
pub(super) fn prepare(path: &Path, create: bool) -> Result<String, OpenError> {
    let unusable = || OpenError::Path(path.to_owned());
    let absolute = std::path::absolute(path)?;
    let folder = absolute.parent().ok_or_else(unusable)?;
    let text = absolute.to_str().ok_or_else(unusable)?;
    // Never open an existing file here: closing it would release the locks that other connections of this process have
    // on it (fcntl(2), "Record locking and file descriptors").
    match absolute.symlink_metadata() {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound && create => make(&absolute, folder)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(OpenError::NotFound(absolute)),
        Err(error) => return Err(error.into()),
    }
    refuse_network(&absolute)?;
    Ok(text.to_owned())
}

fn make(path: &Path, folder: &Path) -> Result<(), OpenError> {
    refuse_network(folder)?;
    // The write-ahead log and its index inherit this mode.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(File::open(folder)?.sync_all()?),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn refuse_network(path: &Path) -> Result<(), OpenError> {
    let found = rustix::fs::statfs(path).map_err(std::io::Error::from)?;
    // `f_type` is 32 or 64 bits wide and signed on some platforms; magic numbers have 32 bits.
    #[expect(clippy::cast_sign_loss, reason = "only the low 32 bits are compared")]
    let magic = (found.f_type as u64) & 0xffff_ffff;
    match NETWORK_FILE_SYSTEMS.iter().find(|(number, _)| *number == magic) {
        Some((_, kind)) => Err(OpenError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}
