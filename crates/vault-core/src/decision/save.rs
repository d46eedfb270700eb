//! Saves of credentials.

use super::{Authorized, EarlierRequests, Outcome};
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId};
use crate::port::SaveCredential;
use crate::sealed::SealedMetadata;

/// State on which saves in one organization depend.
#[derive(Clone, Debug, Default)]
pub struct SaveFacts {
    /// Number of credentials of the organization, which is locked. `None` if the organization does not exist.
    pub credentials: Option<i64>,
    /// Earlier requests with the idempotency keys of the saves.
    pub earlier: EarlierRequests,
}

/// Decides saves in one organization. For each accepted save, the store adds the credential, counts it and records its
/// idempotency key.
pub fn decide_saves<'a>(
    mut facts: SaveFacts,
    saves: impl IntoIterator<Item = Authorized<'a, SaveCredential>>,
) -> Vec<Outcome<CredentialId>> {
    saves.into_iter().map(|save| facts.decide(&save)).collect()
}

impl SaveFacts {
    fn decide(&mut self, Authorized { command, key_active }: &Authorized<'_, SaveCredential>) -> Outcome<CredentialId> {
        let save = &command.payload;
        // Check this first: a repeated request gets its original result, whatever has changed since.
        if let Some(earlier) = self.earlier.answer(save.idempotency.as_ref()) {
            return Outcome::Unchanged(earlier.map(|(credential, _)| credential));
        }
        if !*key_active || !is_under_one_key(save.sealed.key, save.description.metadata.as_ref()) {
            return Outcome::refused(Refusal::Contended);
        }
        let Some(credentials) = self.credentials.as_mut().filter(|credentials| **credentials < save.limit) else {
            return Outcome::refused(save.limit_reached());
        };
        *credentials += 1;
        self.earlier.remember(save.idempotency.as_ref(), (save.id, save.version));
        Outcome::Done { answer: save.id, effects: () }
    }
}

/// Returns whether data and metadata are sealed with one key. Otherwise the key was replaced while they were being
/// sealed.
pub(super) fn is_under_one_key(key: KeyId, metadata: Option<&SealedMetadata>) -> bool {
    metadata.is_none_or(|metadata| metadata.key == key)
}
