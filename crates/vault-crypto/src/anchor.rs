//! The anchor: a small file outside the database with the newest checkpoint of the audit log, with which a rollback of
//! the database is detected.

use crate::durable;
use crate::instance_keys::InstanceKeyring;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_core::audit::CheckpointRef;
use vault_core::digest::Digest;
use vault_core::id::InstanceId;
use vault_core::keyring::KeyringRef;

/// Magic bytes, and version 1.
const HEAD: [u8; 5] = *b"OVAN\x01";
/// Length of magic bytes, instance, restore epoch, number and hash of the checkpoint and of the keyring document, and
/// MAC.
const LENGTH: usize = 5 + 16 + 8 + 8 + 32 + 8 + 32 + 32;

/// Content of an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Restore epoch, which each restore raises.
    pub epoch: u64,
    /// Newest checkpoint.
    pub checkpoint: CheckpointRef,
    /// Newest keyring document.
    pub keyring: KeyringRef,
}

/// Reads and writes the anchors of one instance.
#[derive(Clone)]
pub struct Anchors {
    keys: Arc<InstanceKeyring>,
}

/// File of an anchor, with the key of its MAC.
pub struct AnchorFile {
    path: PathBuf,
    anchors: Anchors,
}

/// Reason why an anchor is refused.
#[derive(Debug, thiserror::Error)]
#[error("anchor {} {error_kind}", .path.display())]
pub struct AnchorError {
    path: PathBuf,
    error_kind: AnchorErrorKind,
}

/// Violation of an anchor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnchorErrorKind {
    /// Not in this format, or of a version that this program does not support.
    #[error("is damaged or has an unknown version")]
    Malformed,
    /// The anchor belongs to another instance.
    #[error("belongs to another vault (instance {0})")]
    OtherInstance(InstanceId),
    /// Its MAC does not verify.
    #[error("was modified: its MAC does not verify")]
    Changed,
    /// Its MAC does not verify, and it names a later keyring document than the database has: its key is newer than the
    /// database. The numbers are not authenticated.
    #[error("was written with keyring document {keyring}, which the database does not have: the database is older")]
    NewerKeyring {
        /// Number of the document in the anchor.
        keyring: i64,
        /// Number of the checkpoint in the anchor.
        checkpoint: i64,
    },
    /// The operating system refused the operation.
    #[error("cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

impl AnchorError {
    /// Returns the violation.
    pub const fn error_kind(&self) -> &AnchorErrorKind {
        &self.error_kind
    }
}

impl Anchors {
    pub(crate) const fn new(keys: Arc<InstanceKeyring>) -> Self {
        Self { keys }
    }

    /// Returns the keyring document in the database, as last read.
    pub fn keyring(&self) -> KeyringRef {
        self.keys.document().mark()
    }

    /// Returns whether the keyring document that was last read is that of `known` or a successor. Otherwise the
    /// database was rolled back.
    pub fn keyring_follows(&self, known: KeyringRef) -> bool {
        self.keys.document().is_at_or_after(known)
    }

    /// Returns the anchor in the file at `path`.
    pub fn at(&self, path: impl Into<PathBuf>) -> AnchorFile {
        AnchorFile { path: path.into(), anchors: self.clone() }
    }
}

impl AnchorFile {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the anchors of its instance.
    pub const fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    /// Reads the anchor. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// The file is damaged, belongs to another vault, or cannot be read.
    pub fn load(&self) -> Result<Option<Anchor>, AnchorError> {
        self.read().map_err(|error_kind| self.error(error_kind))
    }

    /// Writes the anchor and replaces an older one. It is synced to the disk when this returns. Several processes may
    /// write concurrently.
    ///
    /// # Errors
    /// The anchor cannot be written. The older one is kept.
    pub fn store(&self, anchor: Anchor) -> Result<(), AnchorError> {
        self.write(anchor).map_err(|error| self.error(error.into()))
    }

    fn read(&self) -> Result<Option<Anchor>, AnchorErrorKind> {
        let mut bytes = Vec::with_capacity(LENGTH);
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.by_ref().take(LENGTH as u64 + 1).read_to_end(&mut bytes)?;
        let (body, mac) = bytes.split_last_chunk::<32>().ok_or(AnchorErrorKind::Malformed)?;
        let rest = body.strip_prefix(&HEAD).ok_or(AnchorErrorKind::Malformed)?;
        let (instance, rest) = rest.split_first_chunk::<16>().ok_or(AnchorErrorKind::Malformed)?;
        let (epoch, rest) = rest.split_first_chunk::<8>().ok_or(AnchorErrorKind::Malformed)?;
        let (number, rest) = rest.split_first_chunk::<8>().ok_or(AnchorErrorKind::Malformed)?;
        let (hash, rest) = rest.split_first_chunk::<32>().ok_or(AnchorErrorKind::Malformed)?;
        let (document, rest) = rest.split_first_chunk::<8>().ok_or(AnchorErrorKind::Malformed)?;
        let document_hash = rest.try_into().map_err(|_| AnchorErrorKind::Malformed)?;
        let checkpoint = CheckpointRef { number: i64::from_be_bytes(*number), hash: Digest::from_bytes(*hash) };
        let keyring = KeyringRef { number: i64::from_be_bytes(*document), hash: Digest::from_bytes(document_hash) };
        let instance = InstanceId::from_bytes(*instance);
        if instance != self.anchors.keys.instance() {
            return Err(AnchorErrorKind::OtherInstance(instance));
        }
        // The anchor does not name the key, so try all of them.
        let mac = Digest::from_bytes(*mac);
        let purposes = self.anchors.keys.purposes();
        if !purposes.audit.all().any(|entry| Digest::from_bytes(entry.key.anchor.mac([body])) == mac) {
            return Err(match keyring.number > self.anchors.keyring().number {
                true => AnchorErrorKind::NewerKeyring { keyring: keyring.number, checkpoint: checkpoint.number },
                false => AnchorErrorKind::Changed,
            });
        }
        Ok(Some(Anchor { epoch: u64::from_be_bytes(*epoch), checkpoint, keyring }))
    }

    fn write(&self, anchor: Anchor) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend_from_slice(&HEAD);
        bytes.extend_from_slice(self.anchors.keys.instance().as_bytes());
        bytes.extend_from_slice(&anchor.epoch.to_be_bytes());
        bytes.extend_from_slice(&anchor.checkpoint.number.to_be_bytes());
        bytes.extend_from_slice(anchor.checkpoint.hash.as_bytes());
        bytes.extend_from_slice(&anchor.keyring.number.to_be_bytes());
        bytes.extend_from_slice(anchor.keyring.hash.as_bytes());
        let mac = self.anchors.keys.purposes().audit.active().key.anchor.mac([bytes.as_slice()]);
        bytes.extend_from_slice(&mac);
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Replicas may share the directory, and would use each other's unfinished file. The lock is kept until the
        // directory is closed. On file systems without such locks, the MAC reveals a conflict.
        let _ = flock(&directory, FlockOperation::LockExclusive);
        durable::replace(&self.path, &bytes)
    }

    fn error(&self, error_kind: AnchorErrorKind) -> AnchorError {
        AnchorError { path: self.path.clone(), error_kind }
    }
}

impl fmt::Debug for Anchors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Anchors({})", self.keys.instance())
    }
}

impl fmt::Debug for AnchorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnchorFile({})", self.path.display())
    }
}

#[cfg(test)]
mod tests;
