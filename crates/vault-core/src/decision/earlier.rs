//! Earlier requests with idempotency keys.

use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{AccountId, CredentialId};
use crate::port::Idempotency;
use std::collections::HashMap;

/// Result of an earlier request with an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierRequest {
    /// Keyed digest of the request.
    pub body: Digest,
    /// ID of the credential.
    pub credential: CredentialId,
    /// Version of the credential.
    pub version: i64,
}

impl EarlierRequest {
    /// Returns the result of a request with the same key: that of the earlier one, whatever has changed since.
    ///
    /// # Errors
    /// [`Refusal::IdempotencyMismatch`] if the requests differ.
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
    /// Adds a request.
    pub fn insert(&mut self, account: AccountId, key: String, request: EarlierRequest) {
        self.0.entry(account).or_default().insert(key, request);
    }

    /// Returns the result of a request whose key was used before, or `None` if it has no key or an unused one.
    pub(super) fn answer(&self, idempotency: Option<&Idempotency>) -> Option<Result<(CredentialId, i64), Refusal>> {
        let idempotency = idempotency?;
        let earlier = self.0.get(&idempotency.account)?.get(&idempotency.key)?;
        Some(earlier.answer(idempotency))
    }

    /// Adds a request that is carried out now.
    pub(super) fn remember(&mut self, idempotency: Option<&Idempotency>, (credential, version): (CredentialId, i64)) {
        if let Some(Idempotency { account, key, body }) = idempotency {
            self.insert(*account, key.clone(), EarlierRequest { body: *body.current(), credential, version });
        }
    }
}
