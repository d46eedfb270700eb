//! The anchor, with which a server detects that its database was rolled back.

use crate::error::Error;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use vault_core::audit::CheckpointRef;
use vault_core::keyring::KeyringRef;
use vault_core::usecase::Operator;
use vault_crypto::{Anchor, AnchorError, AnchorErrorKind, AnchorFile};

/// Path of the anchor, and behaviour without one.
#[derive(Clone, Debug)]
pub(crate) struct AnchorSetting {
    pub(crate) path: PathBuf,
    /// Accept the database in its current state if this vault has no anchor.
    pub(crate) adopt: bool,
}

/// The anchor of an open vault.
pub(crate) struct Anchored {
    file: Arc<AnchorFile>,
    epoch: u64,
    known: Mutex<(CheckpointRef, KeyringRef)>,
    rolled_back: watch::Sender<bool>,
}

/// Reason why the anchor was not updated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FollowError {
    /// The database no longer contains the checkpoint in the anchor.
    #[error(
        "the database no longer contains checkpoint {0} of the audit log: it was rolled back to an earlier state, or replaced"
    )]
    RolledBack(i64),
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] vault_core::Error),
    /// The file could not be written.
    #[error(transparent)]
    File(#[from] AnchorError),
}

impl Anchored {
    /// Verifies that the database contains the checkpoint in the anchor. Creates an anchor for a database without
    /// checkpoints, or with `adopt`.
    ///
    /// # Errors
    /// The database is refused, or the anchor cannot be used.
    pub(crate) async fn open(
        file: AnchorFile,
        adopt: bool,
        epoch: u64,
        operator: &Operator,
        database: &str,
    ) -> Result<Self, Error> {
        let newest = operator.newest_checkpoint().await?;
        let (path, database) = (file.path().to_owned(), database.to_owned());
        let keyring = file.anchors().keyring();
        let found = match file.load() {
            // Adopting it would accept a database that was rolled back to before a key rotation.
            Err(error) if let AnchorErrorKind::NewerKeyring { keyring: anchored, .. } = *error.error_kind() => {
                return Err(Error::OlderKeyring { anchor: path, database, anchored, found: keyring.number });
            }
            Err(error) if adopt && !matches!(error.error_kind(), AnchorErrorKind::Io(_)) => None,
            found => found?,
        };
        // The checkpoint of an anchor from before a deletion of entries no longer exists.
        let start = operator.audit_start().await?.map_or(0, |start| start.number);
        let overtaken = found.as_ref().filter(|anchor| anchor.epoch == epoch && anchor.checkpoint.number < start);
        if let Some(anchor) = overtaken.filter(|_| !adopt) {
            let anchored = anchor.checkpoint.number;
            return Err(Error::AnchorOvertaken { anchor: path, database, anchored, start });
        }
        let rolled_back = found.as_ref().filter(|anchor| anchor.epoch == epoch).map(|anchor| anchor.keyring);
        if let Some(known) = rolled_back.filter(|known| !file.anchors().keyring_follows(*known)) {
            let (anchored, found) = (known.number, keyring.number);
            return Err(Error::OlderKeyring { anchor: path, database, anchored, found });
        }
        let known = match found.as_ref().filter(|anchor| anchor.epoch != epoch || anchor.checkpoint.number >= start) {
            Some(anchor) => {
                let CheckpointRef { number, .. } = anchor.checkpoint;
                if newest.number < number {
                    let newest = newest.number;
                    return Err(Error::OlderDatabase { anchor: path, database, anchored: number, newest });
                }
                let held = operator.has_checkpoint(anchor.checkpoint).await?;
                if !held || anchor.epoch != epoch {
                    return Err(Error::OtherHistory { anchor: path, database, checkpoint: number });
                }
                anchor.checkpoint
            }
            None if newest.number > 0 && !adopt => {
                return Err(Error::AnchorMissing { anchor: path, database, newest: newest.number });
            }
            None => {
                // A server on PostgreSQL may not have needed the directory before.
                if let Some(directory) = path.parent() {
                    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
                    made.map_err(|source| Error::Unwritable { path: directory.to_owned(), source })?;
                }
                file.store(Anchor { epoch, checkpoint: newest, keyring })?;
                newest
            }
        };
        let (rolled_back, _) = watch::channel(false);
        // Written in the next turn if the anchor contains an earlier keyring document.
        let known = found.map_or((known, keyring), |found| (known, found.keyring));
        Ok(Self { file: Arc::new(file), epoch, known: Mutex::new(known), rolled_back })
    }

    /// Updates the anchor to the newest checkpoint. The database must still contain its previous checkpoint.
    pub(crate) async fn follow(&self, operator: &Operator) -> Result<(), FollowError> {
        let (known, known_keyring) = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (newest, keyring) = (operator.newest_checkpoint().await?, self.file.anchors().keyring());
        if (newest, keyring) == (known, known_keyring) {
            return Ok(());
        }
        if newest.number < known.number || !operator.has_checkpoint(known).await? {
            self.rolled_back.send_replace(true);
            return Err(FollowError::RolledBack(known.number));
        }
        let (file, anchor) = (Arc::clone(&self.file), Anchor { epoch: self.epoch, checkpoint: newest, keyring });
        match tokio::task::spawn_blocking(move || file.store(anchor)).await {
            Ok(stored) => stored?,
            Err(_) => return Ok(()), // the runtime was shut down
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = (newest, keyring);
        Ok(())
    }

    /// Waits until the database no longer contains the checkpoint in the anchor.
    pub(crate) async fn rolled_back(&self) {
        let mut reported = self.rolled_back.subscribe();
        // The sender exists as long as `self`.
        let _ = reported.wait_for(|rolled_back| *rolled_back).await;
    }
}
