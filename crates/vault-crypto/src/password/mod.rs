//! Passwords: argon2id (RFC 9106) with sealed hashes, and the same work for every login.

mod huge_pages;
mod parameters;
mod pool;
mod verifier;

pub use parameters::Argon2Parameters;
pub use pool::HashingPool;

use crate::aead::AeadKey;
use crate::context::Context;
use crate::entropy::{random_key, random_key_id, random_uuid};
use crate::error::{no_entropy, not_sealed};
use crate::instance_keys::InstanceKeyring;
use argon2::{Algorithm, Argon2, Version};
use async_trait::async_trait;
use pool::Memory;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use subtle::ConstantTimeEq as _;
use vault_core::hash_slots::Requester;
use vault_core::id::{AccountId, InstanceId, PasswordId};
use vault_core::password::MAX_BYTES;
use vault_core::port::{Entropy, HashError, HashPermit, PasswordHasher, PasswordVerdict, SealError};
use vault_core::sealed::SealedPassword;
use verifier::{Damaged, HASH, SALT, Verifier};
use zeroize::Zeroizing;

/// Hashes passwords on a [`HashingPool`].
pub(crate) struct Argon2Hasher {
    pool: Arc<HashingPool>,
    inner: Arc<Inner>,
}

struct Inner {
    keys: Arc<InstanceKeyring>,
    /// Parameters for new hashes.
    parameters: Argon2Parameters,
    /// All parameter sets that a stored hash may have, including `parameters`, in ascending order.
    sets: RwLock<BTreeSet<Argon2Parameters>>,
    entropy: Arc<dyn Entropy>,
    /// Hash of no one's password: verified when the stored one does not open.
    decoy: Verifier,
    /// The same hash, sealed under a separate key: opened and verified when none is stored.
    sealed_decoy: SealedPassword,
    decoy_key: AeadKey,
}

/// Ids of the decoy. No account and no password has this id.
const DECOY_ROW: (AccountId, PasswordId) = (AccountId::from_bytes([0; 16]), PasswordId::from_bytes([0; 16]));

impl Argon2Hasher {
    pub(crate) fn new(
        keys: Arc<InstanceKeyring>,
        pool: Arc<HashingPool>,
        parameters: Argon2Parameters,
        legacy: Vec<Argon2Parameters>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, SealError> {
        let mut decoy = Verifier { parameters, salt: [0; SALT], hash: [0; HASH] };
        entropy.fill(&mut decoy.salt).map_err(no_entropy)?;
        entropy.fill(&mut decoy.hash).map_err(no_entropy)?;
        // The replacement of the instance key does not affect this key.
        let decoy_key =
            AeadKey::new(random_key_id(&*entropy).map_err(no_entropy)?, &random_key(&*entropy).map_err(no_entropy)?);
        let sealed_decoy = seal(&decoy_key, &*entropy, keys.instance(), DECOY_ROW, &decoy)?;
        let sets = RwLock::new(legacy.into_iter().chain([parameters]).collect());
        Ok(Self { pool, inner: Arc::new(Inner { keys, parameters, sets, entropy, decoy, sealed_decoy, decoy_key }) })
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
        account: Option<AccountId>,
        password: SecretString,
        stored: Option<SealedPassword>,
    ) -> Result<PasswordVerdict, HashError> {
        // No account has such a password, so it is not hashed.
        if is_too_long(&password) {
            return Ok(PasswordVerdict::Wrong);
        }
        let inner = Arc::clone(&self.inner);
        self.pool.run(permit, move |memory| inner.verify(memory, account.zip(stored), &password)).await?
    }

    async fn hash(
        &self,
        permit: HashPermit,
        account: AccountId,
        password: SecretString,
    ) -> Result<SealedPassword, HashError> {
        if is_too_long(&password) {
            return Err(HashError::Fault("a password has at most 1,024 bytes".into()));
        }
        let inner = Arc::clone(&self.inner);
        self.pool.run(permit, move |memory| inner.hash_new(memory, account, &password)).await?
    }
}

fn is_too_long(password: &SecretString) -> bool {
    password.expose_secret().len() > MAX_BYTES // only its length
}

impl Inner {
    fn verify(
        &self,
        memory: &mut Memory,
        stored: Option<(AccountId, SealedPassword)>,
        password: &SecretString,
    ) -> Result<PasswordVerdict, HashError> {
        let (owner, opened) = match &stored {
            Some((account, sealed)) => (Some((*account, sealed.id)), self.open(*account, sealed)),
            None => (None, self.open_under(&self.decoy_key, DECOY_ROW.0, &self.sealed_decoy)),
        };
        let (of, verifier) = match &opened {
            Ok(verifier) => (owner, verifier),
            Err(Damaged) => (None, &self.decoy),
        };
        // Every login computes the same hashes in the same order, whether the password is right or wrong: the time
        // reveals neither the parameters of an account nor whether the account exists.
        let lags = verifier.parameters.lags_behind(self.parameters);
        let (mut right, mut rehashed) = (false, None);
        for set in self.sets_with(verifier.parameters) {
            if set == verifier.parameters {
                let computed = self.compute(memory, set, &verifier.salt, password)?;
                right = computed.ct_eq(&verifier.hash).into();
            } else if let Some(of) = of
                && set == self.parameters
                && lags
            {
                // The password is the same, and so is its id.
                rehashed = Some(self.hash(memory, of, password)?);
            } else {
                self.compute(memory, set, &self.decoy.salt, password)?;
            }
        }
        Ok(match opened {
            // The decoy always opens, so the damaged hash belongs to an account.
            Err(Damaged) => PasswordVerdict::Damaged,
            Ok(_) if right && owner.is_some() => PasswordVerdict::Right { rehashed },
            Ok(_) => PasswordVerdict::Wrong,
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

    fn open(&self, account: AccountId, sealed: &SealedPassword) -> Result<Verifier, Damaged> {
        let context = Context::password(self.keys.instance(), account, sealed.id);
        let keys = self.keys.sealed(&context, &sealed.blob).map_err(|_| Damaged)?;
        self.open_under(&keys.password, account, sealed)
    }

    fn open_under(&self, key: &AeadKey, account: AccountId, sealed: &SealedPassword) -> Result<Verifier, Damaged> {
        let context = Context::password(self.keys.instance(), account, sealed.id);
        let text = key.open(&context, &sealed.blob).map_err(|_| Damaged)?;
        Verifier::read(&text)
    }

    fn hash_new(
        &self,
        memory: &mut Memory,
        account: AccountId,
        password: &SecretString,
    ) -> Result<SealedPassword, HashError> {
        let id = random_uuid(&*self.entropy).map_err(|error| HashError::Fault(error.into()))?;
        self.hash(memory, (account, PasswordId::from_uuid(id)), password)
    }

    fn hash(
        &self,
        memory: &mut Memory,
        of: (AccountId, PasswordId),
        password: &SecretString,
    ) -> Result<SealedPassword, HashError> {
        let mut salt = [0; SALT];
        self.entropy.fill(&mut salt).map_err(|error| HashError::Fault(error.into()))?;
        let hash = self.compute(memory, self.parameters, &salt, password)?;
        let verifier = Verifier { parameters: self.parameters, salt, hash: *hash };
        seal(&self.keys.active().password, &*self.entropy, self.keys.instance(), of, &verifier)
            .map_err(|error| HashError::Fault(error.into()))
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

fn seal(
    key: &AeadKey,
    entropy: &dyn Entropy,
    instance: InstanceId,
    (account, id): (AccountId, PasswordId),
    verifier: &Verifier,
) -> Result<SealedPassword, SealError> {
    let context = Context::password(instance, account, id);
    let blob = key.seal(entropy, &context, verifier.to_text().as_bytes()).map_err(not_sealed)?;
    Ok(SealedPassword { id, blob })
}

#[cfg(test)]
mod tests;
