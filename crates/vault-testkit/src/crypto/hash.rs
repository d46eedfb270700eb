//! Password "hashing" that stores the password.

use crate::clock::lock;
use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use vault_core::hash_slots::Requester;
use vault_core::id::{AccountId, PasswordId};
use vault_core::port::{HashError, HashPermit, PasswordHasher, PasswordVerdict};
use vault_core::sealed::{Blob, SealedPassword};

/// Compares passwords in plaintext. A verifier is bound to its account, as a real one is.
#[derive(Debug)]
pub struct FakeHasher {
    permits: Arc<Semaphore>,
    /// The account of each verified password, or `None` for a decoy.
    verified: Mutex<Vec<Option<AccountId>>>,
    requested: Mutex<Vec<Requester>>,
    hashed: AtomicU64,
}

impl FakeHasher {
    /// Creates a hasher that returns [`HashError::Busy`] while `permits` permits are acquired.
    pub fn with_permits(permits: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            verified: Mutex::default(),
            requested: Mutex::default(),
            hashed: AtomicU64::new(1),
        }
    }

    /// Returns the account of each password that was verified, or `None` for a decoy.
    pub fn verified(&self) -> Vec<Option<AccountId>> {
        lock(&self.verified).clone()
    }

    /// Returns the requesters of all permits so far.
    pub fn requested(&self) -> Vec<Requester> {
        lock(&self.requested).clone()
    }
}

impl Default for FakeHasher {
    fn default() -> Self {
        Self::with_permits(Semaphore::MAX_PERMITS)
    }
}

#[async_trait]
impl PasswordHasher for FakeHasher {
    fn permit(&self, requester: Requester) -> Result<HashPermit, HashError> {
        lock(&self.requested).push(requester);
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| HashError::Busy)?;
        Ok(HashPermit(Box::new(permit)))
    }

    async fn verify(
        &self,
        _permit: HashPermit,
        account: Option<AccountId>,
        password: SecretString,
        stored: Option<SealedPassword>,
    ) -> Result<PasswordVerdict, HashError> {
        lock(&self.verified).push(account);
        let (Some(account), Some(stored)) = (account, stored) else { return Ok(PasswordVerdict::Wrong) };
        let stored_text = String::from_utf8_lossy(stored.blob.as_bytes());
        let Some(right) = stored_text.strip_prefix(&prefix(account, stored.id)) else {
            return Ok(PasswordVerdict::Damaged);
        };
        // Compared in plaintext: this is the fake.
        if right == password.expose_secret() {
            Ok(PasswordVerdict::Right { rehashed: None })
        } else {
            Ok(PasswordVerdict::Wrong)
        }
    }

    async fn hash(
        &self,
        _permit: HashPermit,
        account: AccountId,
        password: SecretString,
    ) -> Result<SealedPassword, HashError> {
        let id = PasswordId::from_bytes(u128::from(self.hashed.fetch_add(1, Ordering::SeqCst)).to_be_bytes());
        // Stored in plaintext: this is the fake.
        let text = format!("{}{}", prefix(account, id), password.expose_secret());
        Ok(SealedPassword { id, blob: Blob::from_bytes(text.into_bytes()) })
    }
}

fn prefix(account: AccountId, id: PasswordId) -> String {
    format!("not-a-hash:{account}:{id}:")
}
