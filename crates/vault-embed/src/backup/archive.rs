//! Format of a backup: a tar archive of a description, the wrapped database key and the encrypted database, in this
//! order.

use crate::error::Error;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, open, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tar::{Archive, Builder, Entry, Header};

/// Members of the archive.
const DESCRIPTION: &str = "orgvault-backup.json";
const KEY: &str = "orgvault.db.key";
const DATABASE: &str = "orgvault.db";

/// Format that this build writes and reads.
const FORMAT: u32 = 1;
/// Maximum size of the first two members, in bytes.
const LONGEST: u64 = 64 * 1024;
/// Number of bytes that are read at a time.
const PIECE: usize = 256 * 1024;

/// Description in a backup. A restore does not rely on it. The schedule of a server only deletes backups whose
/// `instance` and `scheduled` identify them as its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) format: u32,
    pub(crate) instance: String,
    pub(crate) created_at: String,
    pub(crate) program: String,
    pub(crate) rows: u64,
    /// Whether the schedule of a server created it.
    pub(crate) scheduled: bool,
}

impl Description {
    pub(crate) fn new(instance: String, created_at: String, rows: u64, scheduled: bool) -> Self {
        Self { format: FORMAT, instance, created_at, program: env!("CARGO_PKG_VERSION").to_owned(), rows, scheduled }
    }
}

/// Reason why a file cannot be used as a backup.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveErrorKind {
    #[error("not found. Check the path")]
    Missing,
    #[error("is not a backup: expected {expected}, found {found}. Pass a file that `orgvault backup` created")]
    NotABackup { expected: String, found: String },
    #[error("has format {found}; this version of OrgVault reads format {FORMAT}. Use the newer version")]
    NewerFormat { found: u32 },
    #[error("is truncated: expected a database of {expected} bytes, found {found}. Use another backup")]
    Truncated { expected: u64, found: u64 },
    #[error("cannot be read: {0}")]
    Io(io::Error),
}

impl From<io::Error> for ArchiveErrorKind {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

/// A backup whose header was read.
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) description: Description,
    /// Content of the wrapped database key's file.
    pub(crate) key: Vec<u8>,
    /// Size of the database in bytes.
    pub(crate) size: u64,
}

/// Writes an archive to the empty file `to`, which is synced to the disk when this returns. Calls `progress` with the
/// number of written bytes.
pub(crate) fn write(
    to: &File,
    description: &Description,
    key: &[u8],
    database: &Path,
    seconds: u64,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let mut builder = Builder::new(to);
    let said = serde_json::to_vec_pretty(description)?;
    append(&mut builder, DESCRIPTION, said.len() as u64, seconds, &*said)?;
    append(&mut builder, KEY, key.len() as u64, seconds, key)?;
    let database = File::open(database)?;
    let length = database.metadata()?.len();
    append(&mut builder, DATABASE, length, seconds, ProgressReader { inner: database, done: 0, progress })?;
    builder.finish()?;
    to.sync_all()
}

fn append(builder: &mut Builder<&File>, name: &str, length: u64, seconds: u64, content: impl Read) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o600);
    header.set_mtime(seconds);
    header.set_size(length);
    builder.append_data(&mut header, name, content)
}

/// Reader that reports the number of bytes read.
struct ProgressReader<'a, R> {
    inner: R,
    done: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.done += read as u64;
        (self.progress)(self.done);
        Ok(read)
    }
}

impl Opened {
    /// Reads the header of the archive at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let opened = with_database(path, |description, key, database| {
            let size = database.header().size()?;
            Ok(Self { path: path.to_owned(), description, key, size })
        });
        opened.map_err(|reason| refused(path, &reason))
    }

    /// Writes the database to the new file `to`. Calls `progress` with the number of written bytes.
    pub(crate) fn extract(&self, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        let failed = |error| Error::io(to, error);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(failed)?;
        let mut written = Ok(());
        let found = with_database(&self.path, |_, _, database| {
            let mut reported = ProgressReader { inner: database, done: 0, progress };
            let mut piece = vec![0; PIECE];
            loop {
                let read = reported.read(&mut piece)?;
                if read == 0 {
                    return Ok(reported.done);
                }
                written = file.write_all(&piece[..read]);
                if written.is_err() {
                    return Ok(reported.done);
                }
            }
        });
        let found = found.map_err(|reason| refused(&self.path, &reason))?;
        written.map_err(failed)?;
        match found == self.size {
            true => Ok(()),
            false => Err(refused(&self.path, &ArchiveErrorKind::Truncated { expected: self.size, found })),
        }
    }

    /// Returns whether the archive contains the database in the file `as_in`.
    pub(crate) fn has(&self, as_in: &Path) -> Result<bool, Error> {
        let compared = with_database(&self.path, |_, _, mut database| {
            let mut file = File::open(as_in)?;
            let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
            loop {
                let read = database.read(&mut ours)?;
                if read == 0 {
                    return Ok(file.read(&mut theirs)? == 0);
                }
                match file.read_exact(&mut theirs[..read]) {
                    Ok(()) if ours[..read] == theirs[..read] => {}
                    Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error.into()),
                    _ => return Ok(false),
                }
            }
        });
        compared.map_err(|reason| refused(&self.path, &reason))
    }
}

fn refused(backup: &Path, reason: &ArchiveErrorKind) -> Error {
    Error::Archive { backup: backup.to_owned(), reason: reason.to_string() }
}

fn with_database<T>(
    path: &Path,
    then: impl FnOnce(Description, Vec<u8>, Entry<'_, File>) -> Result<T, ArchiveErrorKind>,
) -> Result<T, ArchiveErrorKind> {
    let not_a_backup =
        |expected: &str, found: String| ArchiveErrorKind::NotABackup { expected: expected.to_owned(), found };
    // Open it without blocking: a pipe would wait for a writer.
    let opened = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let file = File::from(opened.map_err(io::Error::from)?);
    if !file.metadata()?.is_file() {
        return Err(not_a_backup("a file", "something else".to_owned()));
    }
    if file.metadata()?.len() == 0 {
        return Err(not_a_backup("an archive", "an empty file".to_owned()));
    }
    let mut archive = Archive::new(file);
    let mut entries = archive.entries()?;
    let mut next = |name: &str| match entries.next() {
        Some(Ok(entry)) => match entry.path_bytes() == name.as_bytes() {
            true => Ok(entry),
            false => Err(not_a_backup(name, "another member".to_owned())),
        },
        // The reader's messages quote the file, which may contain anything, including a secret.
        Some(Err(_)) => Err(not_a_backup(name, "no tar archive".to_owned())),
        None => Err(not_a_backup(name, "the end of the file".to_owned())),
    };
    let mut said = Vec::new();
    next(DESCRIPTION)?.take(LONGEST).read_to_end(&mut said)?;
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    // Read the number first, because the rest of a newer format is unknown.
    let format = serde_json::from_slice::<Format>(&said).map(|said| said.format);
    match format {
        Ok(found) if found > FORMAT => return Err(ArchiveErrorKind::NewerFormat { found }),
        _ => {}
    }
    let description = serde_json::from_slice(&said);
    let description =
        description.map_err(|_| not_a_backup(DESCRIPTION, "a member of this name without its content".to_owned()))?;
    let mut key = Vec::new();
    next(KEY)?.take(LONGEST).read_to_end(&mut key)?;
    then(description, key, next(DATABASE)?)
}

/// Renames the finished file `from` to the unused name `to` in the same directory. Synced to the disk when this
/// returns.
pub(crate) fn publish(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot rename without replacing.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if !to.try_exists()? => std::fs::rename(from, to)?,
        other => other?,
    }
    sync_directory(to.parent().unwrap_or(Path::new("/")))
}

/// Syncs creations, renames and deletions in a directory to the disk.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        // Some file systems cannot sync a directory, but order changes automatically.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// Opens the file for an unfinished archive exclusively. A file that a killed backup left is reused. Returns `None` if
/// another process writes it, or if it is not a backup.
pub(crate) fn take_unfinished(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(open(path, flags, Mode::RUSR | Mode::WUSR)?);
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut head = Vec::new();
    Read::by_ref(&mut file).take(DESCRIPTION.len() as u64).read_to_end(&mut head)?;
    if file.try_lock().is_err() || !(head.is_empty() || head == DESCRIPTION.as_bytes()) {
        return Ok(None);
    }
    file.set_len(0)?;
    io::Seek::rewind(&mut file)?;
    Ok(Some(file))
}
