//! Secret files that flags name. Files are read only if other users have no access, and are created with mode 0600.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _, stdout};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use vault_crypto::SecretFile;
use zeroize::Zeroizing;

/// Reads at most `limit` bytes from the file at `path`, which `flag` names.
pub fn read(flag: &str, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let read = SecretFile::open(path).and_then(|file| file.read(limit));
    read.map_err(|error| Failure::new(format!("{flag}: {error}")))
}

/// Same as [`read`], with `-` for standard input. Reads at most `limit` bytes.
pub fn read_or_stdin(flag: &str, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if path.as_os_str() != "-" {
        return read(flag, path, limit);
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(limit)); // growing would leave copies in memory
    let read = std::io::stdin().lock().take(u64::try_from(limit).unwrap_or(u64::MAX)).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("{flag}: cannot read standard input: {error}")))?;
    Ok(bytes)
}

/// A new file for a secret that is not issued yet. It is created first, so that no secret is issued that cannot be
/// stored. If dropped without a write, it is removed.
pub struct NewSecretFile {
    path: PathBuf,
    /// `None` for standard output, and after the write.
    file: Option<File>,
}

impl NewSecretFile {
    /// Creates the file at `path`, which `flag` names, with mode 0600. Does not overwrite a file or follow a symbolic
    /// link (`O_CREAT | O_EXCL`, POSIX open(2)). The path `-` is standard output.
    pub fn create(flag: &str, path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Self { path: "standard output".into(), file: None });
        }
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = created.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::new(format!(
                "{flag}: {} exists and is not overwritten. Choose another file, or remove this one",
                path.display()
            )),
            _ => Failure::new(format!("{flag}: cannot create {}: {error}", path.display())),
        })?;
        Ok(Self { path: path.to_owned(), file: Some(file) })
    }

    /// Writes `secret` and a line end, and syncs the file to disk.
    pub fn write(mut self, secret: &str) -> Result<(), Failure> {
        let line = Zeroizing::new(format!("{secret}\n")); // the file is intended for this secret
        let written = match &mut self.file {
            Some(file) => file.write_all(line.as_bytes()).and_then(|()| file.sync_all()),
            None => stdout().write_all(line.as_bytes()).and_then(|()| stdout().flush()),
        };
        written.map_err(|error| Failure::new(format!("cannot write {}: {error}", self.path.display())))?;
        self.file = None;
        Ok(())
    }
}

impl Drop for NewSecretFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = fs::remove_file(&self.path); // the caller reports the failure
        }
    }
}
