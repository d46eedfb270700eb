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

/// What a credential's row says that a change relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialFacts {
    /// Its revision.
    pub revision: i64,
    /// Its current version.
    pub version: i64,
    /// The staged version, if any.
    pub staged: Option<i64>,
    /// Highest version number ever assigned, including destroyed versions.
    pub highest: i64,
    /// The key that its metadata is sealed under, if it has any.
    pub metadata_key: Option<KeyId>,
}

/// What changes in one organization rely on.
#[derive(Clone, Debug, Default)]
pub struct ChangeFacts {
    /// Those of the credentials that exist, which nobody else changes meanwhile.
    pub credentials: HashMap<CredentialId, CredentialFacts>,
    /// The earlier requests under the idempotency keys of the changes.
    pub earlier: EarlierRequests,
}

/// What a change does to a credential's row and versions, beside its new description and expiry, which the command has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeEffects<'a> {
    /// The row as it was.
    pub before: CredentialFacts,
    /// The row's next revision.
    pub revision: i64,
    /// The highest number of a version from now on.
    pub highest: i64,
    /// The current version from now on.
    pub current: i64,
    /// The staged version from now on.
    pub staged: Option<i64>,
    /// What becomes of the version concerned.
    pub version: VersionEffect<'a>,
    /// Versions that are destroyed after that. The one that was current may be among them.
    pub destroyed: &'a [i64],
}

/// What a change does with a version.
#[derive(Clone, Copy, Debug)]
pub enum VersionEffect<'a> {
    /// The current version stays.
    Keep,
    /// This new version is stored beside the current one.
    Stage(&'a NewVersion),
    /// The current version is kept as a previous one, and this new one takes its place.
    Replace(&'a NewVersion, Superseded),
    /// The current version is kept as a previous one, and the stored version of this number takes its place.
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
    /// The version that it brings, if it brings one.
    pub const fn new_version(&self) -> Option<&NewVersion> {
        match &self.change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => Some(version),
            CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => None,
        }
    }

    /// The organization key that its new parts are sealed under; `None`: it has none.
    pub fn sealing_key(&self) -> Option<KeyId> {
        self.new_version().map(|new| new.sealed.key).or(self.new_metadata().map(|said| said.key))
    }

    /// The metadata that is new: what was sealed for an earlier revision is stored again as it was.
    fn new_metadata(&self) -> Option<&SealedMetadata> {
        self.metadata().filter(|said| said.revision > self.revision)
    }

    fn metadata(&self) -> Option<&SealedMetadata> {
        self.description.as_ref().and_then(|said| said.metadata.as_ref())
    }
}

/// Decides changes in one organization; each answer is the number of the version concerned. For each that is done the store
/// writes the effects, description and expiry, and keeps its idempotency key.
pub fn judge_changes<'a>(
    mut facts: ChangeFacts,
    changes: impl IntoIterator<Item = Authorized<'a, ChangeCredential>>,
) -> Vec<Outcome<i64, ChangeEffects<'a>>> {
    changes.into_iter().map(|change| facts.judge(&change)).collect()
}

impl ChangeFacts {
    fn judge<'a>(
        &mut self,
        Authorized { command, key_active }: &Authorized<'a, ChangeCredential>,
    ) -> Outcome<i64, ChangeEffects<'a>> {
        let act = &command.act;
        let idempotency = act.new_version().and_then(|new| new.idempotency.as_ref());
        // First of all: a request that was carried out is answered as it was then, whatever has changed since.
        if let Some(earlier) = self.earlier.answer(idempotency) {
            return Outcome::Unchanged(earlier.map(|(_, number)| number));
        }
        let Some(row) = self.credentials.get_mut(&act.id) else { return Outcome::refused(Refusal::NotFound) };
        if row.revision != act.revision {
            return Outcome::refused(Refusal::Changed);
        }
        // Metadata that is stored again as it was read may have been moved to another key since.
        let stale =
            act.metadata().is_some_and(|said| said.revision <= row.revision && row.metadata_key != Some(said.key));
        let one_key = act.sealing_key().is_none_or(|key| is_under_one_key(key, act.new_metadata()));
        if !*key_active || stale || !one_key {
            return Outcome::refused(Refusal::Contended);
        }
        let effects = row.change(act, command.now);
        let number = match &act.change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => version.number,
            CredentialChange::Promote { number, .. } | CredentialChange::Destroy(number) => *number,
            CredentialChange::Describe => row.version,
        };
        row.apply(act, &effects);
        self.earlier.remember(idempotency, (act.id, number));
        Outcome::Done { answer: number, effects }
    }
}

impl CredentialFacts {
    fn change<'a>(&self, act: &'a ChangeCredential, now: Timestamp) -> ChangeEffects<'a> {
        let (version, destroyed): (_, &[i64]) = match &act.change {
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
        let (current, staged) = act.change.versions_after(self.version, self.staged);
        ChangeEffects {
            before: *self,
            revision: self.revision + 1,
            highest: act.new_version().map_or(self.highest, |new| new.number),
            current,
            staged,
            version,
            destroyed,
        }
    }

    fn apply(&mut self, act: &ChangeCredential, effects: &ChangeEffects<'_>) {
        (self.version, self.staged) = (effects.current, effects.staged);
        (self.revision, self.highest) = (effects.revision, effects.highest);
        if act.description.is_some() {
            self.metadata_key = act.metadata().map(|said| said.key);
        }
    }
}
