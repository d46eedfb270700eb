//! Deletions of credentials.

use super::Outcome;
use crate::error::Refusal;
use crate::id::CredentialId;
use crate::port::DeleteCredential;
use std::collections::HashMap;

/// Decides deletions in one organization. `revisions` contains the revisions of the credentials that exist. For `true`,
/// the store deletes all rows of the credential and decrements the count. If several deletions concern one credential,
/// exactly one gets `true`.
pub fn decide_deletes<'a>(
    mut revisions: HashMap<CredentialId, i64>,
    deletes: impl IntoIterator<Item = &'a DeleteCredential>,
) -> Vec<Outcome<bool>> {
    let decide = |delete: &DeleteCredential| {
        let Some(found) = revisions.get(&delete.id) else { return Outcome::Unchanged(Ok(false)) };
        if delete.revision.is_some_and(|revision| revision != *found) {
            return Outcome::refused(Refusal::Changed);
        }
        revisions.remove(&delete.id);
        Outcome::Done { answer: true, effects: () }
    };
    deletes.into_iter().map(decide).collect()
}
