//! Password "hashing" that stores the password.

use crate::clock::lock;
use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::sync::Mutex;
use tokio::sync::Semaphore;
use vault_core::entity::DocumentSecret;
use vault_core::hash_slots::Requester;
use vault_core::port::{HashError, HashPermit, PasswordHasher, PasswordVerdict};

/// Compares passwords in plaintext.
#[derive(Debug)]
pub struct FakeHasher {
    permits: Arc<Semaphore>,
    /// Whether each password was compared with a stored one, not with a decoy.
    verified: Mutex<Vec<bool>>,
    requested: Mutex<Vec<Requester>>,
}

impl FakeHasher {
    /// Creates a hasher that returns [`HashError::Busy`] while `permits` permits are acquired.
    pub fn with_permits(permits: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(permits)), verified: Mutex::default(), requested: Mutex::default() }
    }

    /// Returns whether each verified password was compared with a stored one, not with a decoy.
    pub fn verified(&self) -> Vec<bool> {
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
        password: SecretString,
        stored: Option<DocumentSecret>,
    ) -> Result<PasswordVerdict, HashError> {
        lock(&self.verified).push(stored.is_some());
        let Some(stored) = stored else { return Ok(PasswordVerdict::Wrong) };
        // Compared in plaintext: this is the fake.
        Ok(match stored.text().expose_secret().strip_prefix(PREFIX) {
            Some(right) if right == password.expose_secret() => PasswordVerdict::Right { rehashed: None },
            Some(_) => PasswordVerdict::Wrong,
            None => PasswordVerdict::Damaged,
        })
    }

    async fn hash(&self, _permit: HashPermit, password: SecretString) -> Result<DocumentSecret, HashError> {
        // Stored in plaintext: this is the fake.
        Ok(SecretString::from(format!("{PREFIX}{}", password.expose_secret())).into())
    }
}

const PREFIX: &str = "not-a-hash:";
