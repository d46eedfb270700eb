//! Files that flags or the environment name, opened while this process still had the rights of root.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use vault_crypto::{SecretFile, SecretFileError, SecretFileFlaw};
use zeroize::Zeroizing;

/// Opened files by the path that names them. Any other is opened when it is read, with the rights that the process has
/// then.
#[derive(Default)]
pub(crate) struct NamedFiles {
    secrets: BTreeMap<PathBuf, SecretFile>,
    texts: BTreeMap<PathBuf, File>,
}

impl NamedFiles {
    /// Opens what exists of these.
    pub(super) fn open(secrets: &[PathBuf], texts: &[PathBuf]) -> Result<Self, Failure> {
        let mut files = Self::default();
        for path in secrets {
            match SecretFile::open(path) {
                Ok(file) => drop(files.secrets.insert(path.clone(), file)),
                Err(error) if matches!(error.flaw(), SecretFileFlaw::Missing) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for path in texts {
            match File::open(path) {
                Ok(file) => drop(files.texts.insert(path.clone(), file)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::new(format!("{} cannot be read: {error}", path.display()))),
            }
        }
        Ok(files)
    }

    /// The secret file at `path`, if it was opened before.
    pub(crate) fn opened_secret(&self, path: &Path) -> io::Result<Option<SecretFile>> {
        self.secrets.get(path).map(SecretFile::try_clone).transpose()
    }

    /// The content of the secret file at `path`: at most `limit` bytes.
    pub(crate) fn read_secret(&self, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, SecretFileError> {
        match self.secrets.get(path) {
            Some(file) => file.read(limit),
            None => SecretFile::open(path)?.read(limit),
        }
    }

    /// The content of the file at `path`: at most `limit` bytes.
    pub(crate) fn read_text(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut file = match self.texts.get(path) {
            Some(file) => file.try_clone()?,
            None => File::open(path)?,
        };
        if self.texts.contains_key(path) {
            file.rewind()?; // it may have been read before
        }
        let mut content = Vec::new();
        file.take(limit).read_to_end(&mut content)?;
        Ok(content)
    }
}
