//! Saves of credentials.

use super::{Authorized, EarlierRequests, Outcome};
use crate::error::Refusal;
use crate::id::{CredentialId, KeyId};
use crate::port::SaveCredential;
use crate::sealed::SealedMetadata;

/// What saves in one organization rely on.
#[derive(Clone, Debug, Default)]
pub struct SaveFacts {
    /// How many credentials the organization has, which nobody else changes meanwhile; `None`: it does not exist.
    pub credentials: Option<i64>,
    /// The earlier requests under the idempotency keys of the saves.
    pub earlier: EarlierRequests,
}

/// Decides saves in one organization. For each that is done the store adds the credential, counts it, and keeps its
/// idempotency key.
pub fn judge_saves<'a>(
    mut facts: SaveFacts,
    saves: impl IntoIterator<Item = Authorized<'a, SaveCredential>>,
) -> Vec<Outcome<CredentialId>> {
    saves.into_iter().map(|save| facts.judge(&save)).collect()
}

impl SaveFacts {
    fn judge(&mut self, Authorized { command, key_active }: &Authorized<'_, SaveCredential>) -> Outcome<CredentialId> {
        let save = &command.act;
        // First of all: a request that was carried out is answered as it was then, whatever has changed since.
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

/// Whether data and metadata are sealed under one key. If not, the key was replaced while they were being sealed.
pub(super) fn is_under_one_key(key: KeyId, metadata: Option<&SealedMetadata>) -> bool {
    metadata.is_none_or(|metadata| metadata.key == key)
}
