//! Rotate an organization's key: make a new one, move what the old ones seal, destroy them.

use super::progress::{Progress, Search};
use super::{Keys, RotationEnd};
use crate::audit::{Actor, AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::id::{KeyId, OrganizationId};
use crate::port::{
    DestroyOrganizationKey, Event, FindSealed, KeyDestruction, MoveSealed, ReplaceOrganizationKey, SealError,
    SealedPart, SealedPlace, SealedRow, StoreError,
};
use crate::sealed::{KeyState, OrganizationKeys};
use crate::usecase::CountedSealer;
use crate::usecase::vault::active;
use futures_util::lock::Mutex;

/// Number of retries if another rotation starts or ends concurrently.
const ATTEMPTS: usize = 16;
/// How far, in batches, somebody jumps at most who finds that others are moving the same rows.
const JUMP: usize = 16;

/// A rotation under progress. All of its progress is in the rows: it may be dropped anywhere, begun again, and carried out by
/// any number of workers and processes at once.
pub struct OrganizationRotation {
    keys: Keys,
    sealer: CountedSealer,
    organization: OrganizationId,
    /// Key that was active at the start.
    to: KeyId,
    is_new: bool,
    rows: i64,
    progress: Mutex<Progress<SealedPart, SealedPlace>>,
}

impl Keys {
    /// Begins a rotation: gives the organization a new active key, after which nothing more is sealed under the old one.
    /// If an earlier key is still retiring, no new key is made, and that rotation is completed.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`]; the store failed.
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
            let audit = self.environment.record(now, Some(organization), Actor::Operator, action, subject);
            let recorded = Event::recorded(&audit);
            let replaced =
                match self.store.replace_organization_key(ReplaceOrganizationKey { current, next, audit }).await {
                    // The instance key was replaced since it wrapped the new one.
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
            rows = rows.saturating_add(self.store.count_sealed(organization, key).await?.total());
        }
        Ok(OrganizationRotation {
            keys: self.clone(),
            sealer: self.counted(),
            organization,
            to: active(organization, keys)?.id,
            is_new,
            rows,
            progress: Mutex::new(Progress::through(&retiring(keys), &SealedPart::ALL)),
        })
    }
}

impl OrganizationRotation {
    /// The key that the organization seals with now.
    pub const fn key(&self) -> KeyId {
        self.to
    }

    /// Whether this call made that key; else an earlier rotation is completed.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// How many rows were to be moved when it began.
    pub const fn rows(&self) -> i64 {
        self.rows
    }

    /// Moves the next rows, and gives how many this call moved; `None`: nothing is left to move. May be called by several
    /// tasks at once, each of which then moves other rows.
    ///
    /// # Errors
    /// The store failed. Rows that were moved stay moved, and the call can be repeated.
    pub async fn step(&self) -> Result<Option<usize>, Error> {
        let Some((from, part, rows)) = self.claim().await? else { return Ok(None) };
        let (organization, store) = (self.organization, &self.keys.store);
        let uses = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let to = self.sealer.take_uses(organization, uses).await?;
        let places: Vec<_> = rows.iter().map(SealedRow::place).collect();
        let moved = match self.keys.rewrapper.rewrap(organization, to, rows).await {
            Ok(moved) => moved,
            // It was replaced since its uses were taken.
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
                // The key of the row was destroyed: somebody else has moved the row.
                Err(SealError::UnknownKey { .. }) => {}
                Err(error) => {
                    self.keys.environment.report(&error);
                    self.progress.lock().await.damaged.insert((part, place));
                }
            }
        }
        let count = rows.len();
        match store.move_sealed(MoveSealed { organization, from, to, part, rows }).await? {
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

    /// Destroys the keys that seal nothing any more. Call it once every [`step`](Self::step) has given `None`. `None`: a
    /// row was moved from one place to another meanwhile, or another key began to retire; there are further steps.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`]; the store failed.
    pub async fn finish(&self) -> Result<Option<RotationEnd>, Error> {
        let (organization, store, environment) = (self.organization, &self.keys.store, &self.keys.environment);
        let keys = retiring(&store.organization_keys(organization).await?.ok_or(Refusal::NoOrganization)?);
        let mut progress = self.progress.lock().await;
        let mut kept = Vec::new();
        for key in keys.iter().copied() {
            let (action, subject) = (AuditAction::OrganizationKeyDestroyed, Subject::Organization(organization));
            let audit = environment.record(environment.now(), Some(organization), Actor::Operator, action, subject);
            let recorded = Event::recorded(&audit);
            match store.destroy_organization_key(DestroyOrganizationKey { organization, key, audit }).await? {
                KeyDestruction::Destroyed => {
                    environment.emit(recorded);
                    progress.destroyed.push(key);
                }
                KeyDestruction::InUse => kept.push((key, store.count_sealed(organization, key).await?.total())),
                // Another process has destroyed it.
                KeyDestruction::NotRetiring => {}
            }
        }
        let again = Progress::through(&keys, &SealedPart::ALL);
        Ok(progress.end(kept, again))
    }

    /// The next rows to move.
    async fn claim(&self) -> Result<Option<(KeyId, SealedPart, Vec<SealedRow>)>, Error> {
        // Held while reading, so that each task of this process gets other rows.
        let mut progress = self.progress.lock().await;
        let (organization, limit) = (self.organization, self.keys.batch);
        let find = |search: Search<_, _>| {
            let Search { key, part, after, skip } = search;
            self.keys.store.find_sealed(FindSealed { organization, key, part, after, skip, limit })
        };
        Ok(progress.claim(find, SealedRow::place).await?)
    }

    /// How many rows to leave to the others who are moving the same ones.
    fn jump(&self) -> usize {
        let chance = usize::from(self.keys.environment.ids.random().as_bytes()[15]);
        (1 + chance % JUMP).saturating_mul(self.keys.batch)
    }
}

fn retiring(keys: &OrganizationKeys) -> Vec<KeyId> {
    keys.keys.iter().filter(|key| key.state == KeyState::Retiring).map(|key| key.id).collect()
}
