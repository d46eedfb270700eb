//! Requests that were carried out under an idempotency key.

use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{AccountId, CredentialId};
use crate::port::Idempotency;
use std::collections::HashMap;

/// What a request under an idempotency key made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierRequest {
    /// The keyed digest of the request.
    pub body: Digest,
    /// The credential.
    pub credential: CredentialId,
    /// Its version.
    pub version: i64,
}

impl EarlierRequest {
    /// The answer to a request under the same key: that of the earlier one, whatever has changed since.
    ///
    /// # Errors
    /// [`Refusal::IdempotencyMismatch`].
    pub fn answer(&self, idempotency: &Idempotency) -> Result<(CredentialId, i64), Refusal> {
        if idempotency.body.all().contains(&self.body) {
            Ok((self.credential, self.version))
        } else {
            Err(Refusal::IdempotencyMismatch)
        }
    }
}

/// Earlier requests of one organization, by account and idempotency key.
#[derive(Clone, Debug, Default)]
pub struct EarlierRequests(HashMap<AccountId, HashMap<String, EarlierRequest>>);

impl EarlierRequests {
    /// Adds one.
    pub fn insert(&mut self, account: AccountId, key: String, request: EarlierRequest) {
        self.0.entry(account).or_default().insert(key, request);
    }

    /// The answer to a request whose key was used before; `None`: it has no key, or its key is free.
    pub(super) fn answer(&self, idempotency: Option<&Idempotency>) -> Option<Result<(CredentialId, i64), Refusal>> {
        let idempotency = idempotency?;
        let earlier = self.0.get(&idempotency.account)?.get(&idempotency.key)?;
        Some(earlier.answer(idempotency))
    }

    /// Adds one that is carried out now.
    pub(super) fn remember(&mut self, idempotency: Option<&Idempotency>, (credential, version): (CredentialId, i64)) {
        if let Some(Idempotency { account, key, body }) = idempotency {
            self.insert(*account, key.clone(), EarlierRequest { body: *body.current(), credential, version });
        }
    }
}
