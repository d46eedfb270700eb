//! Audit entries in a file.

use crate::LineError;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

/// A file to which lines are appended. It is opened for each call, so that it can be rotated.
#[derive(Clone, Debug)]
pub struct AuditFile(Arc<Path>);

impl AuditFile {
    /// Creates the destination at `path`. The file is created with the first lines, with mode 0600.
    pub fn new(path: &Path) -> Self {
        Self(path.into())
    }

    /// Appends text and waits until it is on disk.
    ///
    /// # Errors
    /// The file cannot be opened or written, or other users can change it.
    pub async fn append(&self, text: Vec<u8>) -> Result<(), LineError> {
        let path = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || append(&path, &text)).await?
    }
}

fn append(path: &Path, text: &[u8]) -> Result<(), LineError> {
    let mut file = open(path)?;
    file.write_all(text)?;
    file.sync_data()?;
    Ok(())
}

/// Opens the file at `path`, or creates it. Rejects a file that another user could have created or can change, because
/// entries could be lost or modified unnoticed.
fn open(path: &Path) -> Result<File, LineError> {
    let mut options = OpenOptions::new();
    // Do not block on a pipe without a reader. Pipes are rejected below.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.append(true).create(true).mode(0o600).custom_flags(i32::try_from(flags.bits())?);
    let shown = path.display();
    let file = options.open(path).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => format!("{shown} is a symbolic link. Name the file itself").into(),
        Some(Errno::NXIO) => format!("{shown} is no regular file").into(),
        _ => LineError::from(error),
    })?;
    let found = file.metadata()?;
    let own = geteuid().as_raw();
    if !found.is_file() {
        return Err(format!("{shown} is no regular file").into());
    }
    if found.uid() != own && found.uid() != 0 {
        let owner = found.uid();
        return Err(
            format!("{shown} belongs to user {owner}, not to root or to user {own}, who runs the server").into()
        );
    }
    if found.mode() & 0o022 != 0 {
        let mode = found.mode() & 0o7777;
        return Err(format!("{shown} has mode {mode:04o}, so other users can change it. Run chmod 600 {shown}").into());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn file_that_others_can_change_is_refused() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("audit.jsonl");
        let mut file = open(&path).expect("it is made");
        file.write_all(b"1\n").expect("it takes a line");
        assert_eq!(file.metadata().expect("it is there").mode() & 0o7777, 0o600);
        open(&path).expect("it is this user's").write_all(b"2\n").expect("it takes another");
        assert_eq!(fs::read(&path).expect("it is there"), b"1\n2\n");

        let refusal = |path: &Path| open(path).err().map(|error| error.to_string()).unwrap_or_default();
        for mode in [0o666, 0o620, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is this user's");
            assert!(refusal(&path).contains("other users can change it. Run chmod 600"), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is this user's");
        assert_eq!(refusal(&path), "");
        let link = scratch.path().join("link");
        symlink(&path, &link).expect("there is room");
        assert!(refusal(&link).contains("is a symbolic link"), "{}", refusal(&link));
        assert_ne!(refusal(scratch.path()), "");
        assert!(refusal(Path::new("/dev/null")).contains("is no regular file"));
    }
}
