//! Encryption with counted uses of the organization's key, which is replaced when its uses are exhausted.

use crate::audit::{Actor, AuditAction, Subject};
use crate::credential::{Card, Fingerprint, SecretBytes};
use crate::id::{KeyId, OrganizationId};
use crate::key_use::{KeyUseDecision, KeyUseLimits};
use crate::port::{
    CardContext, CredentialContext, Event, KeyRepository, ReplaceOrganizationKey, ReserveKeyUses, SealError, Sealer,
    StoreError,
};
use crate::sealed::{Blob, KeyState, OrganizationKeyRecord, OrganizationKeys, SealedData};
use crate::usecase::Environment;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of attempts to reserve a use while other replicas reserve blocks or replace the key.
const ATTEMPTS: usize = 32;
/// Maximum number of organizations with remembered uses. For an evicted organization, the rest of its block is lost.
const REMEMBERED: usize = 10_000;
/// Number of organizations that are compared to find the least recently used one.
const SAMPLE: usize = 16;
/// Number of locks for the reservation of blocks.
const TURNS: usize = 64;

/// A [`Sealer`] with counted key uses: each seal consumes one use, reserved in the key's row in advance.
///
/// Each process has one instance. Another instance reserves its own blocks.
pub struct CountedSealer {
    environment: Environment,
    sealer: Arc<dyn Sealer>,
    keys: Arc<dyn KeyRepository>,
    limits: KeyUseLimits,
    allowances: Mutex<Allowances>,
    /// Locked while a block is reserved, so that concurrent callers of one organization share one block.
    turns: [futures_util::lock::Mutex<()>; TURNS],
}

/// A sealed card and, if given, the sealed data of one of its versions.
pub struct Sealed {
    /// The key that sealed them.
    pub key: KeyId,
    /// The card.
    pub card: Blob,
    /// The data.
    pub data: Option<SealedData>,
}

impl CountedSealer {
    /// Creates a sealer that seals with `sealer` and counts in `keys`.
    pub fn new(environment: Environment, sealer: Arc<dyn Sealer>, keys: Arc<dyn KeyRepository>) -> Self {
        Self {
            environment,
            sealer,
            keys,
            limits: KeyUseLimits::default(),
            allowances: Mutex::new(Allowances::new(REMEMBERED)),
            turns: std::array::from_fn(|_| futures_util::lock::Mutex::new(())),
        }
    }

    /// Sets lower limits.
    #[must_use]
    pub fn with_limits(self, limits: KeyUseLimits) -> Self {
        Self { limits, ..self }
    }

    /// Calls [`Sealer::fingerprint`]. Consumes no use of a limited key.
    ///
    /// # Errors
    /// Those of [`Sealer::fingerprint`].
    pub async fn fingerprint(
        &self,
        organization: OrganizationId,
        data: &SecretBytes,
    ) -> Result<Fingerprint, SealError> {
        self.sealer.fingerprint(organization, data).await
    }

    /// Seals a card and, if given, the data of one of its versions with the organization's active key. If the call is cancelled, at
    /// most a block of uses is lost.
    ///
    /// # Errors
    /// Those of [`Sealer::seal`], and [`SealError::Store`] if no use can be reserved.
    pub async fn seal(
        &self,
        (context, card): (CardContext, &Card),
        data: Option<(CredentialContext, &SecretBytes)>,
    ) -> Result<Sealed, SealError> {
        let organization = context.organization;
        let seal = async |key| {
            let sealed = self.sealer.seal_card(key, context, card).await?;
            let data = match data {
                Some((context, data)) => Some(self.sealer.seal(key, context, &card.namespace, data).await?),
                None => None,
            };
            Ok(Sealed { key, card: sealed, data })
        };
        let key = self.take_use(organization).await?;
        match seal(key).await {
            // A rotation replaced and destroyed the key after its uses were reserved.
            Err(SealError::UnknownKey { .. }) => {
                self.forget(organization, key);
                seal(self.take_use(organization).await?).await
            }
            sealed => sealed,
        }
    }

    /// Discards the remaining uses of `key`, after the store refused data sealed with it.
    pub fn forget(&self, organization: OrganizationId, key: KeyId) {
        self.allowances().forget(organization, key);
    }

    /// Reserves one use of the organization's active key, and returns the key.
    async fn take_use(&self, organization: OrganizationId) -> Result<KeyId, SealError> {
        self.take_uses(organization, 1).await
    }

    /// Reserves `count` uses of the organization's active key, and returns the key.
    pub(in crate::usecase) async fn take_uses(
        &self,
        organization: OrganizationId,
        count: i64,
    ) -> Result<KeyId, SealError> {
        let [.., last] = organization.as_bytes();
        let turn = &self.turns[usize::from(*last) % TURNS];
        for _ in 0..ATTEMPTS {
            if let Some(key) = self.allowances().take(organization, count) {
                return Ok(key);
            }
            let _turn = turn.lock().await;
            if let Some(key) = self.allowances().take(organization, count) {
                return Ok(key);
            }
            self.refill(organization).await?;
        }
        Err(StoreError::Unavailable(
            "other replicas kept using or replacing the organization's key during the request".into(),
        )
        .into())
    }

    /// Reserves the next block of uses, or replaces the key, unless another replica does so first.
    async fn refill(&self, organization: OrganizationId) -> Result<(), SealError> {
        let keys = self.keys.organization_keys(organization).await?.ok_or(SealError::NoKeys)?;
        // A destroyed key that was restored as the active one must not seal anything.
        self.sealer
            .verify_organization_keys(organization, &keys)
            .await
            .inspect_err(|error| self.environment.report(error))?;
        let active = active(organization, &keys)?;
        let decision = self.limits.decide(active.uses);
        if decision != KeyUseDecision::Take {
            match self.replace(&keys, active).await {
                Ok(()) => return Ok(()),
                Err(_) if decision == KeyUseDecision::ReplaceOrTake => {
                    self.environment.emit(Event::OrganizationKeyNotReplaced(active.id));
                }
                Err(error) => return Err(error),
            }
        }
        let (key, block) = (active.id, self.limits.block());
        let command = ReserveKeyUses { organization, key, from: active.uses, block };
        if self.keys.reserve_key_uses(command).await? {
            self.allowances().add(organization, key, block);
        }
        Ok(())
    }

    async fn replace(&self, keys: &OrganizationKeys, active: &OrganizationKeyRecord) -> Result<(), SealError> {
        let (organization, current) = (active.organization, active.id);
        let now = self.environment.now();
        let (action, subject) = (AuditAction::OrganizationKeyReplaced, Subject::Organization(organization));
        let next = self.sealer.new_organization_key(organization, now)?;
        let command = ReplaceOrganizationKey {
            current,
            fingerprint: self.sealer.bind_organization_keys(organization, keys, &keys.with_next(&next)).await?,
            next,
            audit: self.environment.record(now, Some(organization), Actor::System, action, subject),
        };
        if self.keys.replace_organization_key(command).await? {
            self.environment.emit(Event::OrganizationKeyReplaced(current));
        }
        Ok(())
    }

    // No code panics in the middle of a change while it has the lock, so the map of a poisoned lock is consistent.
    fn allowances(&self) -> MutexGuard<'_, Allowances> {
        self.allowances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the only active key.
pub(in crate::usecase) fn active(
    organization: OrganizationId,
    keys: &OrganizationKeys,
) -> Result<&OrganizationKeyRecord, StoreError> {
    let mut active = keys.keys.iter().filter(|key| key.state == KeyState::Active);
    match (active.next(), active.next()) {
        (Some(key), None) => Ok(key),
        _ => Err(StoreError::Integrity {
            table: "organization_keys",
            id: organization.to_string(),
            reason: "the organization does not have exactly one active key",
        }),
    }
}

/// Remaining uses of each organization's key.
struct Allowances {
    by_organization: HashMap<OrganizationId, Allowance>,
    capacity: usize,
    /// Number of uses so far, which is the unit of `last_used`.
    age: u64,
}

struct Allowance {
    key: KeyId,
    left: i64,
    last_used: u64,
}

impl Allowances {
    fn new(capacity: usize) -> Self {
        Self { by_organization: HashMap::new(), capacity, age: 0 }
    }

    fn take(&mut self, organization: OrganizationId, count: i64) -> Option<KeyId> {
        let allowance = self.by_organization.get_mut(&organization).filter(|allowance| allowance.left >= count)?;
        self.age += 1;
        allowance.left -= count;
        allowance.last_used = self.age;
        Some(allowance.key)
    }

    /// Adds uses of `key`. Uses of another key are dropped, because it is no longer active.
    fn add(&mut self, organization: OrganizationId, key: KeyId, uses: i64) {
        if !self.by_organization.contains_key(&organization) && self.by_organization.len() >= self.capacity {
            let sample = self.by_organization.iter().take(SAMPLE);
            if let Some(unused) = sample.min_by_key(|(_, allowance)| allowance.last_used).map(|(id, _)| *id) {
                self.by_organization.remove(&unused);
            }
        }
        let last_used = self.age;
        let allowance = self.by_organization.entry(organization).or_insert(Allowance { key, left: 0, last_used });
        if allowance.key != key {
            *allowance = Allowance { key, left: 0, last_used };
        }
        allowance.left += uses;
    }

    fn forget(&mut self, organization: OrganizationId, key: KeyId) {
        if self.by_organization.get(&organization).is_some_and(|allowance| allowance.key == key) {
            self.by_organization.remove(&organization);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn organization(number: u8) -> OrganizationId {
        OrganizationId::from_bytes([number; 16])
    }

    fn key(number: u8) -> KeyId {
        KeyId::from_bytes([number; 16])
    }

    #[test]
    fn reserved_uses_equal_added_uses() {
        let mut allowances = Allowances::new(10);
        assert_eq!(allowances.take(organization(1), 1), None);
        allowances.add(organization(1), key(1), 2);
        allowances.add(organization(2), key(2), 1);
        allowances.add(organization(1), key(1), 1);
        let taken: Vec<_> = (0..4).map(|_| allowances.take(organization(1), 1)).collect();
        assert_eq!(taken, [Some(key(1)), Some(key(1)), Some(key(1)), None]);
        assert_eq!(allowances.take(organization(2), 1), Some(key(2)));
    }

    #[test]
    fn key_uses_are_reserved_together_or_not_at_all() {
        let mut allowances = Allowances::new(10);
        allowances.add(organization(1), key(1), 4);
        assert_eq!(allowances.take(organization(1), 3), Some(key(1)));
        assert_eq!(allowances.take(organization(1), 2), None);
        assert_eq!(allowances.take(organization(1), 1), Some(key(1)));
    }

    #[test]
    fn uses_belong_to_their_key() {
        let mut allowances = Allowances::new(10);
        allowances.add(organization(1), key(1), 5);
        allowances.add(organization(1), key(2), 1);
        allowances.forget(organization(1), key(1));
        assert_eq!(allowances.take(organization(1), 1), Some(key(2)));
        assert_eq!(allowances.take(organization(1), 1), None);
        allowances.add(organization(1), key(2), 1);
        allowances.forget(organization(1), key(2));
        assert_eq!(allowances.take(organization(1), 1), None);
    }

    #[test]
    fn memory_is_bounded_and_active_organization_stays_loaded() {
        // Use several maps, because each has a different iteration order.
        for _ in 0..16 {
            let mut allowances = Allowances::new(3);
            allowances.add(organization(1), key(1), 1_000);
            for number in 2..=50 {
                assert_eq!(allowances.take(organization(1), 1), Some(key(1)), "it is not added again");
                allowances.add(organization(number), key(number), 10);
                assert!(allowances.by_organization.len() <= 3);
            }
        }
    }

    #[test]
    fn further_uses_evict_no_other_organization() {
        let mut allowances = Allowances::new(2);
        allowances.add(organization(1), key(1), 1);
        allowances.add(organization(2), key(2), 1);
        allowances.add(organization(2), key(2), 1);
        assert_eq!([1, 2].map(|number| allowances.take(organization(number), 1)), [Some(key(1)), Some(key(2))]);
    }
}
