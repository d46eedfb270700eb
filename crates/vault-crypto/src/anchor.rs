//! The anchor: a small file outside the database that knows the newest checkpoint of the audit, so that a database that
//! was set back to an earlier state is recognised.

use crate::durable;
use crate::instance_keys::InstanceKeyring;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_core::audit::CheckpointMark;
use vault_core::digest::Digest;
use vault_core::id::InstanceId;
use vault_core::keyring::KeyringMark;

/// The first bytes: what it is, and version 1.
const HEAD: [u8; 5] = *b"OVAN\x01";
/// Head, instance, restore epoch, number and hash of the checkpoint and of the keyring document, code.
const LENGTH: usize = 5 + 16 + 8 + 8 + 32 + 8 + 32 + 32;

/// What an anchor knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Raised by each restore.
    pub epoch: u64,
    /// The newest checkpoint.
    pub checkpoint: CheckpointMark,
    /// The newest keyring document.
    pub keyring: KeyringMark,
}

/// Reads and writes the anchors of one deployment.
#[derive(Clone)]
pub struct Anchors {
    keys: Arc<InstanceKeyring>,
}

/// The anchor's file, and the key of its code.
pub struct AnchorFile {
    path: PathBuf,
    anchors: Anchors,
}

/// Why an anchor is refused.
#[derive(Debug, thiserror::Error)]
#[error("anchor {} {flaw}", .path.display())]
pub struct AnchorError {
    path: PathBuf,
    flaw: AnchorFlaw,
}

/// What is wrong with an anchor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnchorFlaw {
    /// Not in this format, or of a version that this program does not support.
    #[error("is damaged or has an unknown version")]
    Malformed,
    /// Of another deployment.
    #[error("belongs to another vault (instance {0})")]
    OtherInstance(InstanceId),
    /// Its code does not fit.
    #[error("was changed: it does not fit its code")]
    Changed,
    /// The operating system refused.
    #[error("cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

impl AnchorError {
    /// What is wrong.
    pub const fn flaw(&self) -> &AnchorFlaw {
        &self.flaw
    }
}

impl Anchors {
    pub(crate) const fn new(keys: Arc<InstanceKeyring>) -> Self {
        Self { keys }
    }

    /// The keyring document that the database holds, as it was read last.
    pub fn keyring(&self) -> KeyringMark {
        self.keys.document().mark()
    }

    /// Whether the keyring document that was read last is the one of `known`, or a later one: else the database was set back.
    pub fn keyring_follows(&self, known: KeyringMark) -> bool {
        self.keys.document().is_at_or_after(known)
    }

    /// The anchor in the file at `path`.
    pub fn at(&self, path: impl Into<PathBuf>) -> AnchorFile {
        AnchorFile { path: path.into(), anchors: self.clone() }
    }
}

impl AnchorFile {
    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The anchors of its deployment.
    pub const fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    /// Reads it. `None`: there is none.
    ///
    /// # Errors
    /// The file is damaged, belongs to another vault, or cannot be read.
    pub fn load(&self) -> Result<Option<Anchor>, AnchorError> {
        self.read().map_err(|flaw| self.error(flaw))
    }

    /// Writes it, over an older one. It is on disk when this returns. Several processes may do so at once.
    ///
    /// # Errors
    /// It cannot be written; then the older one stands.
    pub fn store(&self, anchor: Anchor) -> Result<(), AnchorError> {
        self.write(anchor).map_err(|error| self.error(error.into()))
    }

    fn read(&self) -> Result<Option<Anchor>, AnchorFlaw> {
        let mut bytes = Vec::with_capacity(LENGTH);
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.by_ref().take(LENGTH as u64 + 1).read_to_end(&mut bytes)?;
        let (body, code) = bytes.split_last_chunk::<32>().ok_or(AnchorFlaw::Malformed)?;
        let rest = body.strip_prefix(&HEAD).ok_or(AnchorFlaw::Malformed)?;
        let (instance, rest) = rest.split_first_chunk::<16>().ok_or(AnchorFlaw::Malformed)?;
        let (epoch, rest) = rest.split_first_chunk::<8>().ok_or(AnchorFlaw::Malformed)?;
        let (number, rest) = rest.split_first_chunk::<8>().ok_or(AnchorFlaw::Malformed)?;
        let (hash, rest) = rest.split_first_chunk::<32>().ok_or(AnchorFlaw::Malformed)?;
        let (document, rest) = rest.split_first_chunk::<8>().ok_or(AnchorFlaw::Malformed)?;
        let document_hash = rest.try_into().map_err(|_| AnchorFlaw::Malformed)?;
        let instance = InstanceId::from_bytes(*instance);
        if instance != self.anchors.keys.instance() {
            return Err(AnchorFlaw::OtherInstance(instance));
        }
        // It names no key.
        let code = Digest::from_bytes(*code);
        let purposes = self.anchors.keys.purposes();
        if !purposes.audit.all().any(|term| Digest::from_bytes(term.key.anchor.code([body])) == code) {
            return Err(AnchorFlaw::Changed);
        }
        let checkpoint = CheckpointMark { number: i64::from_be_bytes(*number), hash: Digest::from_bytes(*hash) };
        let keyring = KeyringMark { number: i64::from_be_bytes(*document), hash: Digest::from_bytes(document_hash) };
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
        let code = self.anchors.keys.purposes().audit.active().key.anchor.code([bytes.as_slice()]);
        bytes.extend_from_slice(&code);
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Replicas may share the directory, and would take each other's unfinished file. Held until it is closed; where a
        // file system has no such locks, the code shows what went wrong.
        let _ = flock(&directory, FlockOperation::LockExclusive);
        durable::replace(&self.path, &bytes)
    }

    fn error(&self, flaw: AnchorFlaw) -> AnchorError {
        AnchorError { path: self.path.clone(), flaw }
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
