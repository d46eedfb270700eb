//! Rotation of an organization's key: creates a new one, moves what the old ones seal, and destroys them.

use super::progress::{Progress, Search};
use super::{Keys, RotationEnd};
use crate::audit::{Actor, AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::port::{
    DestroyOrganizationKey, Event, FindSealed, KeyDestruction, MoveSealed, ReplaceOrganizationKey, SealError,
    SealedCredential, StoreError,
};
use crate::sealed::{KeyState, OrganizationKeys};
use crate::usecase::CountedSealer;
use crate::usecase::vault::active;
use futures_util::lock::Mutex;

/// Number of retries if another rotation starts or ends concurrently.
const ATTEMPTS: usize = 16;
/// Maximum number of batches to skip if others are moving the same rows.
const JUMP: usize = 16;

/// A rotation in progress. Its progress is only in the rows: it can be dropped and restarted at any time, and several
/// workers and processes can run it concurrently.
pub struct OrganizationRotation {
    keys: Keys,
    sealer: CountedSealer,
    organization: OrganizationId,
    /// Key that was active at the start.
    to: KeyId,
    is_new: bool,
    rows: i64,
    progress: Mutex<Progress<(), CredentialId>>,
}

impl Keys {
    /// Starts a rotation: gives the organization a new active key, after which nothing is sealed with the old one. If
    /// an earlier key is still retiring, creates no new key and completes that rotation.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`], or the store failed.
    pub async fn rotate_organization(&self, organization: OrganizationId) -> Result<OrganizationRotation, Error> {
        for _ in 0..ATTEMPTS {
            let keys = self.store.organization_keys(organization).await?.ok_or(Refusal::NoOrganization)?;
            if keys.keys.iter().any(|key| key.state == KeyState::Retiring) {
                return self.rotation(organization, &keys, false).await;
            }
            let current = active(organization, &keys)?.id;
            let now = self.environment.now();
            let (action, subject) = (AuditAction::OrganizationKeyReplaced, Subject::Organization(organization));
            let next = self.sealer.new_organization_key(organization, now)?;
            let fingerprint = self.sealer.bind_organization_keys(organization, &keys, &keys.with_next(&next)).await?;
            let audit = self.environment.record(now, Some(organization), Actor::Operator, action, subject);
            let recorded = Event::recorded(&audit);
            let replaced = match self
                .store
                .replace_organization_key(ReplaceOrganizationKey { current, next, fingerprint, audit })
                .await
            {
                // Another process replaced the instance key after it wrapped the new key.
                Err(StoreError::Refused(Refusal::Contended)) => {
                    self.sealer.reload_keys().await?;
                    false
                }
                replaced => replaced?,
            };
            if replaced {
                self.environment.emit(recorded);
                let keys = self.store.organization_keys(organization).await?.ok_or(Refusal::NoOrganization)?;
                return self.rotation(organization, &keys, true).await;
            }
        }
        Err(StoreError::Unavailable("other processes kept replacing the organization's key".into()).into())
    }

    async fn rotation(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        is_new: bool,
    ) -> Result<OrganizationRotation, Error> {
        let mut rows = 0_i64;
        for key in retiring(keys) {
            rows = rows.saturating_add(self.store.count_sealed(organization, key).await?);
        }
        Ok(OrganizationRotation {
            keys: self.clone(),
            sealer: self.counted(),
            organization,
            to: active(organization, keys)?.id,
            is_new,
            rows,
            progress: Mutex::new(Progress::through(&retiring(keys), &[()])),
        })
    }
}

impl OrganizationRotation {
    /// Returns the organization's active key.
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

    /// Moves the next rows and returns their number, or `None` if no rows remain. Concurrent calls move different rows.
    ///
    /// # Errors
    /// The store failed. Rows that were moved stay moved, and the call can be repeated.
    pub async fn step(&self) -> Result<Option<usize>, Error> {
        let Some((from, (), rows)) = self.claim().await? else { return Ok(None) };
        let (organization, store) = (self.organization, &self.keys.store);
        // A data key is wrapped for each version, with another key than the one that seals the card.
        let uses = rows.iter().map(|row| row.data.len().max(1)).sum::<usize>();
        let uses = i64::try_from(uses).unwrap_or(i64::MAX);
        let to = self.sealer.take_uses(organization, uses).await?;
        let places: Vec<_> = rows.iter().map(|row| row.id).collect();
        let moved = match self.keys.rewrapper.rewrap(organization, to, rows).await {
            Ok(moved) => moved,
            // Another rotation replaced the key after its uses were reserved.
            Err(SealError::UnknownKey { .. }) => {
                self.sealer.forget(organization, to);
                return Ok(Some(0));
            }
            Err(error) => return Err(error.into()),
        };
        let mut rows = Vec::with_capacity(moved.len());
        for (place, row) in places.into_iter().zip(moved) {
            match row {
                Ok(row) => rows.push(row),
                // The key of the row was destroyed, because another process has moved the row.
                Err(SealError::UnknownKey { .. }) => {}
                Err(error) => {
                    self.keys.environment.report(&error);
                    self.progress.lock().await.damaged.insert(((), place));
                }
            }
        }
        let count = rows.len();
        match store.move_sealed(MoveSealed { organization, from, to, credentials: rows }).await? {
            Some(moved) => {
                if moved < count.div_ceil(2) {
                    self.progress.lock().await.skip = self.jump();
                }
                Ok(Some(moved))
            }
            None => {
                self.sealer.forget(organization, to);
                Ok(Some(0))
            }
        }
    }

    /// Destroys unused keys. Call it after every [`step`](Self::step) has returned `None`. Returns `None` if further
    /// steps are needed, because a row was moved concurrently or another key started to retire.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`], or the store failed.
    pub async fn finish(&self) -> Result<Option<RotationEnd>, Error> {
        let (organization, store, environment) = (self.organization, &self.keys.store, &self.keys.environment);
        let mut stored = store.organization_keys(organization).await?.ok_or(Refusal::NoOrganization)?;
        let keys = retiring(&stored);
        let mut progress = self.progress.lock().await;
        let mut kept = Vec::new();
        for key in keys.iter().copied() {
            let (action, subject) = (AuditAction::OrganizationKeyDestroyed, Subject::Organization(organization));
            let audit = environment.record(environment.now(), Some(organization), Actor::Operator, action, subject);
            let recorded = Event::recorded(&audit);
            let after = stored.without(key);
            let fingerprint = self.keys.sealer.bind_organization_keys(organization, &stored, &after).await?;
            let bound = fingerprint.after.clone();
            let command = DestroyOrganizationKey { organization, key, fingerprint, audit };
            match store.destroy_organization_key(command).await? {
                KeyDestruction::Destroyed => {
                    stored = OrganizationKeys { fingerprint_wrapped: bound, ..after };
                    environment.emit(recorded);
                    progress.destroyed.push(key);
                }
                KeyDestruction::InUse => kept.push((key, store.count_sealed(organization, key).await?)),
                // Another process destroyed the key, or has changed the keys. A later rotation completes this.
                KeyDestruction::NotRetiring => {}
            }
        }
        let again = Progress::through(&keys, &[()]);
        Ok(progress.end(kept, again))
    }

    /// Returns the next rows to move.
    async fn claim(&self) -> Result<Option<(KeyId, (), Vec<SealedCredential>)>, Error> {
        // Keep the lock while reading, so that concurrent tasks of this process claim different rows.
        let mut progress = self.progress.lock().await;
        let (organization, limit) = (self.organization, self.keys.batch);
        let find = |search: Search<_, _>| {
            let Search { key, part: (), after, skip } = search;
            self.keys.store.find_sealed(FindSealed { organization, key, after, skip, limit })
        };
        Ok(progress.claim(find, |row| row.id).await?)
    }

    /// Returns the number of rows to leave to others who are moving the same rows.
    fn jump(&self) -> usize {
        let random = usize::from(self.keys.environment.ids.random().as_bytes()[15]);
        (1 + random % JUMP).saturating_mul(self.keys.batch)
    }
}

fn retiring(keys: &OrganizationKeys) -> Vec<KeyId> {
    keys.keys.iter().filter(|key| key.state == KeyState::Retiring).map(|key| key.id).collect()
}
