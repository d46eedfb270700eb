//! Changes of credentials.

use super::save::is_under_one_key;
use super::{Authorized, EarlierRequests, Outcome};
use crate::credential::Superseded;
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId};
use crate::port::{ChangeCredential, CredentialChange, NewVersion};
use crate::sealed::SealedMetadata;
use crate::time::Timestamp;
use std::collections::HashMap;

/// State of a credential's row on which a change depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialFacts {
    /// Revision.
    pub revision: i64,
    /// Current version.
    pub version: i64,
    /// The staged version, if any.
    pub staged: Option<i64>,
    /// Highest version number ever assigned, including destroyed versions.
    pub highest: i64,
    /// Key that sealed its metadata, if any.
    pub metadata_key: Option<KeyId>,
}

/// State on which changes in one organization depend.
#[derive(Clone, Debug, Default)]
pub struct ChangeFacts {
    /// State of the credentials that exist. Their rows are locked.
    pub credentials: HashMap<CredentialId, CredentialFacts>,
    /// Earlier requests with the idempotency keys of the changes.
    pub earlier: EarlierRequests,
}

/// Effects of a change on a credential's row and versions. The command contains the new description and expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeEffects<'a> {
    /// The row before the change.
    pub before: CredentialFacts,
    /// Revision after the change.
    pub revision: i64,
    /// Highest version number after the change.
    pub highest: i64,
    /// Current version after the change.
    pub current: i64,
    /// Staged version after the change.
    pub staged: Option<i64>,
    /// Effect on the affected version.
    pub version: VersionEffect<'a>,
    /// Versions to destroy afterwards, which may include the previously current one.
    pub destroyed: &'a [i64],
}

/// Effect of a change on a version.
#[derive(Clone, Copy, Debug)]
pub enum VersionEffect<'a> {
    /// The current version is unchanged.
    Keep,
    /// This new version is stored in addition to the current one.
    Stage(&'a NewVersion),
    /// The current version is kept as a previous one, and replaced by this new one.
    Replace(&'a NewVersion, Superseded),
    /// The current version is kept as a previous one, and replaced by the stored version with this number.
    Promote(i64, Superseded),
}

impl PartialEq for VersionEffect<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keep, Self::Keep) => true,
            (Self::Stage(one), Self::Stage(two)) => one.number == two.number,
            (Self::Replace(one, at), Self::Replace(two, other)) => (one.number, at) == (two.number, other),
            (Self::Promote(one, at), Self::Promote(two, other)) => (one, at) == (two, other),
            _ => false,
        }
    }
}

impl Eq for VersionEffect<'_> {}

impl ChangeCredential {
    /// Returns the new version, if any.
    pub const fn new_version(&self) -> Option<&NewVersion> {
        match &self.change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => Some(version),
            CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => None,
        }
    }

    /// Returns the organization key that sealed its new parts, or `None` if it has none.
    pub fn sealing_key(&self) -> Option<KeyId> {
        self.new_version().map(|new| new.sealed.key).or(self.new_metadata().map(|metadata| metadata.key))
    }

    /// Returns the metadata if it is new. Metadata sealed for an earlier revision is stored again unchanged.
    fn new_metadata(&self) -> Option<&SealedMetadata> {
        self.metadata().filter(|metadata| metadata.revision > self.revision)
    }

    fn metadata(&self) -> Option<&SealedMetadata> {
        self.description.as_ref().and_then(|description| description.metadata.as_ref())
    }
}

/// Decides changes in one organization. The result of each is the number of the affected version. For each accepted
/// change, the store writes the effects, description and expiry, and records its idempotency key.
pub fn decide_changes<'a>(
    mut facts: ChangeFacts,
    changes: impl IntoIterator<Item = Authorized<'a, ChangeCredential>>,
) -> Vec<Outcome<i64, ChangeEffects<'a>>> {
    changes.into_iter().map(|change| facts.decide(&change)).collect()
}

impl ChangeFacts {
    fn decide<'a>(
        &mut self,
        Authorized { command, key_active }: &Authorized<'a, ChangeCredential>,
    ) -> Outcome<i64, ChangeEffects<'a>> {
        let payload = &command.payload;
        let idempotency = payload.new_version().and_then(|new| new.idempotency.as_ref());
        // Check this first: a repeated request gets its original result, whatever has changed since.
        if let Some(earlier) = self.earlier.answer(idempotency) {
            return Outcome::Unchanged(earlier.map(|(_, number)| number));
        }
        let Some(row) = self.credentials.get_mut(&payload.id) else { return Outcome::refused(Refusal::NotFound) };
        if row.revision != payload.revision {
            return Outcome::refused(Refusal::Changed);
        }
        // Metadata that is stored again unchanged may have been moved to another key after it was read.
        let stale = payload
            .metadata()
            .is_some_and(|metadata| metadata.revision <= row.revision && row.metadata_key != Some(metadata.key));
        let one_key = payload.sealing_key().is_none_or(|key| is_under_one_key(key, payload.new_metadata()));
        if !*key_active || stale || !one_key {
            return Outcome::refused(Refusal::Contended);
        }
        let effects = row.change(payload, command.now);
        let number = match &payload.change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => version.number,
            CredentialChange::Promote { number, .. } | CredentialChange::Destroy(number) => *number,
            CredentialChange::Describe => row.version,
        };
        row.apply(payload, &effects);
        self.earlier.remember(idempotency, (payload.id, number));
        Outcome::Done { answer: number, effects }
    }
}

impl CredentialFacts {
    fn change<'a>(&self, payload: &'a ChangeCredential, now: Timestamp) -> ChangeEffects<'a> {
        let (version, destroyed): (_, &[i64]) = match &payload.change {
            CredentialChange::Replace { version, destroy_at } => {
                (VersionEffect::Replace(version, Superseded { at: now, destroy_at: *destroy_at }), &version.destroyed)
            }
            CredentialChange::Stage(version) => (VersionEffect::Stage(version), &version.destroyed),
            CredentialChange::Promote { number, destroy_at, destroyed } => {
                (VersionEffect::Promote(*number, Superseded { at: now, destroy_at: *destroy_at }), destroyed)
            }
            CredentialChange::Destroy(number) => (VersionEffect::Keep, std::slice::from_ref(number)),
            CredentialChange::Describe => (VersionEffect::Keep, &[]),
        };
        let (current, staged) = payload.change.versions_after(self.version, self.staged);
        ChangeEffects {
            before: *self,
            revision: self.revision + 1,
            highest: payload.change.highest_after(self.highest),
            current,
            staged,
            version,
            destroyed,
        }
    }

    fn apply(&mut self, payload: &ChangeCredential, effects: &ChangeEffects<'_>) {
        (self.version, self.staged) = (effects.current, effects.staged);
        (self.revision, self.highest) = (effects.revision, effects.highest);
        if payload.description.is_some() {
            self.metadata_key = payload.metadata().map(|metadata| metadata.key);
        }
    }
}
