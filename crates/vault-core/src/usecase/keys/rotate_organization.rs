//! Rotation of an organization's key: creates a new one, moves what the old ones seal, and destroys them.

use super::{Keys, Place, RotationEnd};
use crate::error::{Error, Refusal};
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::organization::{
    CountSealed, DestroyOrganizationKey, MoveCredentials, MovedCredentials, ReadOrganization, RotateOrganization,
    StartedRotation,
};
use futures_util::lock::Mutex;

/// A rotation in progress. Its progress is only in the rows: it can be dropped and restarted at any time, and several
/// workers and processes can run it concurrently.
pub struct OrganizationRotation {
    keys: Keys,
    organization: OrganizationId,
    started: StartedRotation,
    rows: i64,
    next: Mutex<Place<CredentialId>>,
}

impl Keys {
    /// Starts a rotation: gives the organization a new active key, after which nothing is sealed with the old one. If
    /// an earlier key is still retiring, creates no new key and completes that rotation.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`], or the store failed.
    pub async fn rotate_organization(&self, organization: OrganizationId) -> Result<OrganizationRotation, Error> {
        let started = self.run(RotateOrganization(organization)).await?;
        let mut rows = 0_i64;
        for key in self.retiring(organization).await? {
            rows = rows.saturating_add(self.run(CountSealed(organization, key)).await?);
        }
        let next = Mutex::new(Place::After(None));
        Ok(OrganizationRotation { keys: self.clone(), organization, started, rows, next })
    }

    async fn retiring(&self, organization: OrganizationId) -> Result<Vec<KeyId>, Error> {
        let found = self.run(ReadOrganization(organization)).await?.ok_or(Refusal::NoOrganization)?;
        Ok(found.keys.retiring.iter().map(|key| key.id).collect())
    }
}

impl OrganizationRotation {
    /// Returns the organization's active key.
    pub const fn key(&self) -> KeyId {
        self.started.key
    }

    /// Returns whether this call created that key. Otherwise it completes an earlier rotation.
    pub const fn is_new(&self) -> bool {
        self.started.is_new
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
        let Place::After(after) = *next else { return Ok(None) };
        let step = self.move_after(after).await?;
        *next = Place::of(step.last);
        Ok(step.last.map(|_| step.moved))
    }

    /// Destroys unused keys. Call it after every [`step`](Self::step) has returned `None`. Returns `None` if further
    /// steps are needed, because another key started to retire.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`], or the store failed.
    pub async fn finish(&self) -> Result<Option<RotationEnd>, Error> {
        // What these keys seal is all found by the following pass, because nothing is sealed with them any more.
        let retiring = self.keys.retiring(self.organization).await?;
        let (mut after, mut damaged) = (None, Vec::new());
        loop {
            let mut step = self.move_after(after).await?;
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
        let mut end = RotationEnd { destroyed: Vec::new(), kept: Vec::new() };
        for key in retiring {
            match damaged.iter().filter(|(_, of)| *of == key).count() {
                // If not, another process destroyed it.
                0 if self.keys.run(DestroyOrganizationKey(self.organization, key)).await? => end.destroyed.push(key),
                0 => {}
                rows => end.kept.push((key, i64::try_from(rows).unwrap_or(i64::MAX))),
            }
        }
        Ok(Some(end))
    }

    async fn move_after(&self, after: Option<CredentialId>) -> Result<MovedCredentials, Error> {
        self.keys.run(MoveCredentials { organization: self.organization, after, limit: self.keys.batch }).await
    }
}
