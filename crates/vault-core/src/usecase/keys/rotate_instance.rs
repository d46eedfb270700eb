//! Rotation of the instance keys: creates new keys, puts rows under them, and destroys unused old keys.

use super::{Keys, Place, RotationEnd};
use crate::entity::EntityKey;
use crate::error::Error;
use crate::id::KeyId;
use crate::keyring::{KeyPurpose, KeyringEntry};
use crate::operation::{CountUnder, InstanceChange, ReplaceInstance, ReplacedInstance, Reseal, Resealed};
use crate::port::{KeyDestruction, StoreError};
use crate::sealed::{InstanceRecord, KeyState};
use futures_util::lock::Mutex;

/// Number of retries if another rotation starts or ends concurrently.
const ATTEMPTS: usize = 16;

/// A rotation in progress. Its progress is only in the rows: it can be dropped and restarted at any time, and several
/// processes can run it concurrently.
pub struct InstanceRotation {
    keys: Keys,
    /// Key that was active at the start.
    to: KeyId,
    is_new: bool,
    rows: i64,
    next: Mutex<Place<EntityKey>>,
}

impl Keys {
    /// Starts a rotation: gives the instance a new instance key, and new keys for lookups, tokens and the audit log. A few
    /// seconds later, nothing is sealed or signed with the old keys. If an earlier instance key is still retiring, creates no
    /// new keys and completes that rotation.
    ///
    /// # Errors
    /// The store failed, the root key cannot be used, or the keyring cannot be decrypted.
    pub async fn rotate_instance(&self) -> Result<InstanceRotation, Error> {
        for _ in 0..ATTEMPTS {
            let (current, entries) = self.keyring().await?;
            if retiring(&entries).next().is_some() {
                return self.instance_rotation(&entries, false).await;
            }
            let next = match self.instance_rewrapper.next_instance_key(&current, self.environment.now()).await {
                Ok(next) => next,
                // Another process replaced the key after it was read.
                Err(_) if self.store.instance().await?.as_ref() != Some(&current) => continue,
                Err(error) => return Err(error.into()),
            };
            let change = InstanceChange::InstanceKey;
            if self.run(ReplaceInstance { current, next, change }).await? == ReplacedInstance::Replaced {
                return self.instance_rotation(&self.entries().await?, true).await;
            }
        }
        Err(StoreError::Unavailable("other processes kept replacing the instance key".into()).into())
    }

    async fn instance_rotation(&self, entries: &[KeyringEntry], is_new: bool) -> Result<InstanceRotation, Error> {
        self.operations.ports.digester.reload_keys().await?;
        let mut rows = 0_i64;
        for entry in retiring(entries) {
            rows = rows.saturating_add(self.run(CountUnder(entry)).await?);
        }
        let next = Mutex::new(Place::After(None));
        Ok(InstanceRotation { keys: self.clone(), to: self.operations.ports.digester.active_key(), is_new, rows, next })
    }

    /// Runs a step of the rotation.
    async fn reseal(&self, after: Option<EntityKey>) -> Result<Resealed, Error> {
        self.run(Reseal { after, limit: self.batch }).await
    }

    /// Destroys replaced keys for lookups, tokens and the audit log that no row requires, and returns them.
    /// Before a lookup key is destroyed, all rows with its digests are rekeyed, and `seen` is called with the number of
    /// processed rows.
    ///
    /// # Errors
    /// The store failed, or the keyring document cannot be decrypted.
    pub async fn destroy_replaced(&self, seen: &mut (dyn FnMut(u64) + Send)) -> Result<Vec<KeyringEntry>, Error> {
        // Read the time first: everything that was created with a key that was drained by then is visible to the
        // following reads.
        let now = self.environment.now();
        let is_due = |entry: &KeyringEntry| entry.purpose != KeyPurpose::Instance && entry.is_drained(now);
        let due: Vec<_> = self.entries().await?.into_iter().filter(is_due).collect();
        if due.iter().any(|entry| entry.purpose == KeyPurpose::Lookup) {
            self.operations.ports.digester.reload_keys().await?;
            let mut moves = self.rekey_lookups();
            while moves.step().await? {
                seen(moves.rows());
            }
        }
        let mut destroyed = Vec::new();
        for entry in due {
            if self.destroy(entry).await? == KeyDestruction::Destroyed {
                destroyed.push(entry);
            }
        }
        Ok(destroyed)
    }

    /// Returns the instance and the keys that its keyring lists.
    pub(super) async fn keyring(&self) -> Result<(InstanceRecord, Vec<KeyringEntry>), Error> {
        let missing = || StoreError::Fault("the vault has no instance".into());
        let current = self.store.instance().await?.ok_or_else(missing)?;
        self.operations.ports.digester.load_keys(&[current.instance_key]).await?;
        let entries = self.instance_rewrapper.entries(&current)?;
        Ok((current, entries))
    }

    /// Returns the keys that the keyring lists.
    async fn entries(&self) -> Result<Vec<KeyringEntry>, Error> {
        Ok(self.keyring().await?.1)
    }

    /// Destroys a key unless a row requires it.
    async fn destroy(&self, entry: KeyringEntry) -> Result<KeyDestruction, Error> {
        for _ in 0..ATTEMPTS {
            let (current, entries) = self.keyring().await?;
            if !entries.contains(&entry) {
                return Ok(KeyDestruction::NotRetiring);
            }
            let keyring = self.instance_rewrapper.keyring_without(&current, entry.id)?;
            let next = InstanceRecord { keyring, ..current.clone() };
            match self.run(ReplaceInstance { current, next, change: InstanceChange::Destroyed(entry) }).await? {
                ReplacedInstance::Replaced => return Ok(KeyDestruction::Destroyed),
                ReplacedInstance::InUse => return Ok(KeyDestruction::InUse),
                ReplacedInstance::Changed => {}
            }
        }
        Err(StoreError::Unavailable("other processes kept changing the set of keys".into()).into())
    }
}

/// Returns the replaced instance keys, oldest first.
pub(super) fn retiring(entries: &[KeyringEntry]) -> impl Iterator<Item = KeyringEntry> {
    let of_instance =
        |entry: &&KeyringEntry| (entry.purpose, entry.state) == (KeyPurpose::Instance, KeyState::Retiring);
    entries.iter().filter(of_instance).copied()
}

impl InstanceRotation {
    /// Returns the active instance key.
    pub const fn key(&self) -> KeyId {
        self.to
    }

    /// Returns whether this call created that key. Otherwise it completes an earlier rotation.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the number of rows to move at the start.
    pub const fn rows(&self) -> i64 {
        self.rows
    }

    /// Moves the next rows and returns their number, or `None` if no rows remain.
    ///
    /// # Errors
    /// The store failed. Rows that were moved stay moved, and the call can be repeated.
    pub async fn step(&self) -> Result<Option<usize>, Error> {
        let mut next = self.next.lock().await;
        while let Place::After(after) = *next {
            let step = self.keys.reseal(after).await?;
            *next = Place::of(step.last);
            if step.moved > 0 {
                return Ok(Some(step.moved));
            }
        }
        Ok(None)
    }

    /// Opens all rows, and destroys the old keys if none needs them. Returns `None` if further steps are needed, because rows
    /// were moved meanwhile. Damaged rows keep the keys: one of them may be the only one that opens a row once it is restored.
    ///
    /// # Errors
    /// The store failed.
    pub async fn finish(&self) -> Result<Option<RotationEnd>, Error> {
        // Nothing is sealed with these keys any more.
        let entries = self.keys.entries().await?;
        let (mut after, mut damaged) = (None, Vec::new());
        loop {
            let mut step = self.keys.reseal(after).await?;
            damaged.append(&mut step.damaged);
            if step.moved > 0 {
                *self.next.lock().await = Place::of(step.last);
                return Ok(None);
            }
            match step.last {
                Some(_) => after = step.last,
                None => break,
            }
        }
        let rows = i64::try_from(damaged.len()).unwrap_or(i64::MAX);
        damaged.into_iter().for_each(|key| self.keys.environment.emit(key.damaged()));
        let mut end = RotationEnd { destroyed: Vec::new(), kept: Vec::new() };
        for entry in retiring(&entries) {
            let destruction = if rows > 0 { KeyDestruction::InUse } else { self.keys.destroy(entry).await? };
            match destruction {
                KeyDestruction::Destroyed => end.destroyed.push(entry.id),
                KeyDestruction::InUse => end.kept.push((entry.id, rows.max(self.keys.run(CountUnder(entry)).await?))),
                // Another process destroyed the key.
                KeyDestruction::NotRetiring => {}
            }
        }
        Ok(Some(end))
    }
}
