//! Passwords: argon2id (RFC 9106), and the same work for every login.

mod huge_pages;
mod parameters;
mod pool;
mod verifier;

pub use parameters::Argon2Parameters;
pub use pool::HashingPool;

use crate::error::no_entropy;
use argon2::{Algorithm, Argon2, Version};
use async_trait::async_trait;
use pool::Memory;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use subtle::ConstantTimeEq as _;
use vault_core::entity::DocumentSecret;
use vault_core::hash_slots::Requester;
use vault_core::password::MAX_BYTES;
use vault_core::port::{Entropy, HashError, HashPermit, PasswordHasher, PasswordVerdict, SealError};
use verifier::{Damaged, HASH, SALT, Verifier};
use zeroize::Zeroizing;

/// Hashes passwords on a [`HashingPool`].
pub(crate) struct Argon2Hasher {
    pool: Arc<HashingPool>,
    inner: Arc<Inner>,
}

struct Inner {
    /// Parameters for new hashes.
    parameters: Argon2Parameters,
    /// All parameter sets that a stored hash may have, including `parameters`, in ascending order.
    sets: RwLock<BTreeSet<Argon2Parameters>>,
    entropy: Arc<dyn Entropy>,
    /// Hash of no one's password: verified when none is stored, or the stored one is damaged.
    decoy: Verifier,
}

impl Argon2Hasher {
    pub(crate) fn new(
        pool: Arc<HashingPool>,
        parameters: Argon2Parameters,
        legacy: Vec<Argon2Parameters>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, SealError> {
        let mut decoy = Verifier { parameters, salt: [0; SALT], hash: [0; HASH] };
        entropy.fill(&mut decoy.salt).map_err(no_entropy)?;
        entropy.fill(&mut decoy.hash).map_err(no_entropy)?;
        let sets = RwLock::new(legacy.into_iter().chain([parameters]).collect());
        Ok(Self { pool, inner: Arc::new(Inner { parameters, sets, entropy, decoy }) })
    }
}

#[async_trait]
impl PasswordHasher for Argon2Hasher {
    fn permit(&self, requester: Requester) -> Result<HashPermit, HashError> {
        self.pool.permit(requester)
    }

    async fn verify(
        &self,
        permit: HashPermit,
        password: SecretString,
        stored: Option<DocumentSecret>,
    ) -> Result<PasswordVerdict, HashError> {
        // No account has such a password, so it is not hashed.
        if is_too_long(&password) {
            return Ok(PasswordVerdict::Wrong);
        }
        let inner = Arc::clone(&self.inner);
        self.pool.run(permit, move |memory| inner.verify(memory, stored.as_ref(), &password)).await?
    }

    async fn hash(&self, permit: HashPermit, password: SecretString) -> Result<DocumentSecret, HashError> {
        if is_too_long(&password) {
            return Err(HashError::Fault("a password has at most 1,024 bytes".into()));
        }
        let inner = Arc::clone(&self.inner);
        self.pool.run(permit, move |memory| inner.hash(memory, &password)).await?
    }
}

fn is_too_long(password: &SecretString) -> bool {
    password.expose_secret().len() > MAX_BYTES // only its length
}

impl Inner {
    fn verify(
        &self,
        memory: &mut Memory,
        stored: Option<&DocumentSecret>,
        password: &SecretString,
    ) -> Result<PasswordVerdict, HashError> {
        let read = stored.map(|text| Verifier::read(text.text().expose_secret().as_bytes())); // to compare with it
        let (is_own, verifier) = match &read {
            Some(Ok(verifier)) => (true, verifier),
            Some(Err(Damaged)) | None => (false, &self.decoy),
        };
        // Every login computes the same hashes in the same order, whether the password is right or wrong: the time
        // reveals neither the parameters of an account nor whether the account exists.
        let lags = verifier.parameters.lags_behind(self.parameters);
        let (mut right, mut rehashed) = (false, None);
        for set in self.sets_with(verifier.parameters) {
            if set == verifier.parameters {
                let computed = self.compute(memory, set, &verifier.salt, password)?;
                right = computed.ct_eq(&verifier.hash).into();
            } else if is_own && set == self.parameters && lags {
                rehashed = Some(self.hash(memory, password)?);
            } else {
                self.compute(memory, set, &self.decoy.salt, password)?;
            }
        }
        Ok(match read {
            Some(Err(Damaged)) => PasswordVerdict::Damaged,
            Some(Ok(_)) if right => PasswordVerdict::Right { rehashed },
            Some(Ok(_)) | None => PasswordVerdict::Wrong,
        })
    }

    /// Returns the parameter sets that a login hashes with. A set that was not given at start is added permanently.
    fn sets_with(&self, found: Argon2Parameters) -> Vec<Argon2Parameters> {
        // No code under the lock can panic halfway through a change, so a poisoned set is still complete.
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        if sets.contains(&found) {
            return sets.iter().copied().collect();
        }
        drop(sets);
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        sets.insert(found);
        sets.iter().copied().collect()
    }

    fn hash(&self, memory: &mut Memory, password: &SecretString) -> Result<DocumentSecret, HashError> {
        let mut salt = [0; SALT];
        self.entropy.fill(&mut salt).map_err(|error| HashError::Fault(error.into()))?;
        let hash = self.compute(memory, self.parameters, &salt, password)?;
        let text = Verifier { parameters: self.parameters, salt, hash: *hash }.to_text();
        Ok(SecretString::from(text.as_str()).into())
    }

    fn compute(
        &self,
        memory: &mut Memory,
        parameters: Argon2Parameters,
        salt: &[u8],
        password: &SecretString,
    ) -> Result<Zeroizing<[u8; HASH]>, HashError> {
        let fault = |error: argon2::Error| HashError::Fault(error.into());
        let params = parameters.to_argon2().map_err(fault)?;
        let blocks = params.block_count();
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut hash = Zeroizing::new([0; HASH]);
        memory
            .with(blocks, |blocks| {
                let password = password.expose_secret().as_bytes(); // the bytes to hash
                argon2.hash_password_into_with_memory(password, salt, hash.as_mut_slice(), blocks)
            })?
            .map_err(fault)?;
        Ok(hash)
    }
}

#[cfg(test)]
mod tests;
