//! Signing keys of federation tokens: commands of operators, and the tasks of servers.

mod check;
mod manage;
mod publish;

pub use check::PublicationReport;
pub use manage::{FederationStatus, RetiredKeys};
pub use publish::{FederationPublisher, PublishedKeys};

use super::Environment;
use crate::audit::{Actor, Affected, AuditAction, AuditChange, ChangedField, SealedAuditRecord, Subject};
use crate::error::{Error, Refusal};
use crate::federation::{
    FederationIssuer, FederationKey, FederationKeySet, FederationKeyState, Jwk, StoredFederationKey,
};
use crate::id::KeyId;
use crate::port::{
    ChangeFederationKeys, Event, FederationKeySealer, FederationKeyVerifier, FederationStore, KeyedDigester,
    ReplaceKeyring, SealError, StoreError,
};
use crate::sealed::Blob;
use crate::time::Timestamp;
use std::sync::Arc;

/// Number of reads before a row counts as damaged.
const READS: usize = 4;

/// Rows of signing keys. A row that cannot be decoded is its ID.
type Rows = Vec<Result<StoredFederationKey, String>>;

/// Ports for the encryption of signing keys.
#[derive(Clone)]
pub struct FederationCrypto {
    /// Encrypts keys and changes the keyring.
    pub sealer: Arc<dyn FederationKeySealer>,
    /// Verifies stored keys.
    pub verifier: Arc<dyn FederationKeyVerifier>,
    /// Computes MACs of rows, and loads the instance keys.
    pub digester: Arc<dyn KeyedDigester>,
}

/// Operations on signing keys.
#[derive(Clone)]
pub struct Federation {
    environment: Environment,
    store: Arc<dyn FederationStore>,
    crypto: FederationCrypto,
}

/// All signing keys, as read and verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VerifiedKeys {
    /// Keys that the keyring names and whose row is valid.
    valid: Vec<StoredFederationKey>,
    /// Retired keys that a restore dropped from the keyring, so that they are not published.
    dropped: Vec<FederationKey>,
    /// IDs of rows that are damaged, or that the keyring does not name although they are not retired.
    damaged: Vec<String>,
    /// `true` if every key that the keyring names has a valid row.
    is_complete: bool,
}

impl VerifiedKeys {
    fn of(&self, issuer: &FederationIssuer) -> FederationKeySet {
        FederationKeySet::new(issuer, self.valid.iter().map(|row| row.key.clone()), self.is_complete)
    }

    fn dropped_of(&self, issuer: &FederationIssuer) -> impl Iterator<Item = &FederationKey> {
        self.dropped.iter().filter(move |key| key.issuer == *issuer)
    }

    fn find(&self, id: KeyId) -> Option<&StoredFederationKey> {
        self.valid.iter().find(|row| row.key.id == id)
    }
}

/// A change of signing keys before it is signed.
#[derive(Default)]
struct Change {
    added: Option<(FederationKey, Blob)>,
    changed: Vec<FederationKey>,
    removed: Vec<FederationKey>,
    /// Keys that the keyring names no longer.
    dropped: Vec<KeyId>,
    /// Actions on keys, with their key IDs.
    audit: Vec<(AuditAction, String)>,
}

impl Change {
    fn remove(mut self, key: &FederationKey) -> Self {
        self.dropped.push(key.id);
        self.removed.push(key.clone());
        self.record(AuditAction::FederationKeyRemoved, key)
    }

    fn record(mut self, action: AuditAction, key: &FederationKey) -> Self {
        self.audit.push((action, key.jwk.kid().to_owned()));
        self
    }
}

impl Federation {
    /// Creates the context on these ports.
    pub fn new(environment: Environment, store: Arc<dyn FederationStore>, crypto: FederationCrypto) -> Self {
        Self { environment, store, crypto }
    }

    /// Reads and verifies all keys.
    async fn read(&self) -> Result<VerifiedKeys, Error> {
        self.crypto.digester.refresh().await?;
        let rows = self.store.federation_keys().await?;
        Ok(self.verify_or_reread(rows).await?.1)
    }

    /// Verifies rows as read. Keyring and rows are not read in one snapshot, so a concurrent change can look like damage: reads
    /// both again before a row counts as damaged. Returns the rows that were verified.
    async fn verify_or_reread(&self, mut rows: Rows) -> Result<(Rows, VerifiedKeys), Error> {
        let mut found = self.verify(&rows).await?;
        for _ in 1..READS {
            if found.damaged.is_empty() && found.is_complete {
                break;
            }
            self.crypto.digester.reload_keys().await?;
            rows = self.store.federation_keys().await?;
            found = self.verify(&rows).await?;
        }
        Ok((rows, found))
    }

    async fn verify(&self, rows: &Rows) -> Result<VerifiedKeys, Error> {
        let FederationCrypto { verifier, digester, .. } = &self.crypto;
        let mut keys = Vec::new();
        for row in rows.iter().flatten() {
            keys.extend(row.keys());
        }
        digester.load_keys(&keys).await?;
        let named = verifier.named();
        let mut found = VerifiedKeys::default();
        for row in rows {
            let row = match row {
                Ok(row) => row,
                Err(id) => {
                    found.damaged.push(id.clone());
                    continue;
                }
            };
            match (row.mac_is_valid(&**digester), named.contains(&row.key.id)) {
                (true, true) if self.opens(row)? => found.valid.push(row.clone()),
                (true, false) if row.key.state == FederationKeyState::Retired => found.dropped.push(row.key.clone()),
                _ => found.damaged.push(row.key.id.to_string()),
            }
        }
        found.is_complete = named.iter().all(|id| found.find(*id).is_some());
        Ok(found)
    }

    fn opens(&self, row: &StoredFederationKey) -> Result<bool, SealError> {
        match self.crypto.verifier.verify(row) {
            Ok(()) => Ok(true),
            Err(SealError::Integrity { .. } | SealError::UnknownKey { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Changes the keys as `decide` decides on their current state. Returns the decision, or `None` if it requires no
    /// change. Decides again if another process changed a key concurrently.
    async fn change<T>(
        &self,
        actor: Actor,
        decide: impl Fn(&VerifiedKeys, Timestamp) -> Result<Option<(T, Change)>, Error> + Sync,
    ) -> Result<Option<T>, Error> {
        for _ in self.environment.attempts() {
            let (keys, now) = (self.read().await?, self.environment.now());
            let Some((decided, change)) = decide(&keys, now)? else { return Ok(None) };
            match self.apply(actor, &keys, change, now).await {
                Ok(true) => return Ok(Some(decided)),
                Ok(false) => {}
                Err(Error::Refused(Refusal::Contended)) => self.crypto.digester.reload_keys().await?,
                Err(error) => return Err(error),
            }
        }
        Err(Refusal::Contended.into())
    }

    async fn apply(&self, actor: Actor, keys: &VerifiedKeys, change: Change, now: Timestamp) -> Result<bool, Error> {
        let Change { added, changed, removed, dropped, audit } = change;
        let digester = &*self.crypto.digester;
        let sign = |key: FederationKey, private_key: Blob, before: Option<&StoredFederationKey>| StoredFederationKey {
            mac: key.sign(digester),
            private_key,
            checked_at: before.and_then(|row| row.checked_at),
            failure: before.and_then(|row| row.failure),
            key,
        };
        let new: Vec<KeyId> = added.iter().map(|(key, _)| key.id).collect();
        let keyring = match (new.is_empty(), dropped.is_empty()) {
            (true, true) => None,
            _ => {
                let current = self.store.instance().await?;
                let current = current.ok_or_else(|| StoreError::Fault("the vault has no instance".into()))?;
                digester.load_keys(&[current.instance_key]).await?;
                let next = self.crypto.sealer.keyring(&current, &new, &dropped, now)?;
                Some(ReplaceKeyring { current: current.keyring, next })
            }
        };
        let changed = changed.into_iter().filter_map(|key| {
            let before = keys.find(key.id)?;
            Some(sign(key, before.private_key.clone(), Some(before)))
        });
        let audit: Vec<_> = audit.into_iter().map(|(action, kid)| self.entry(actor, action, kid, now)).collect();
        let events: Vec<_> = audit.iter().map(Event::recorded).collect();
        let command = ChangeFederationKeys {
            added: added.into_iter().map(|(key, private_key)| sign(key, private_key, None)).collect(),
            changed: changed.collect(),
            removed: removed.into_iter().map(|key| (key.id, key.version)).collect(),
            keyring,
            audit,
        };
        let names_others = command.keyring.is_some();
        let is_changed = self.store.change_federation_keys(command).await?;
        if is_changed {
            if names_others {
                digester.reload_keys().await?;
            }
            events.into_iter().for_each(|event| self.environment.emit(event));
        }
        Ok(is_changed)
    }

    fn entry(&self, actor: Actor, action: AuditAction, kid: String, now: Timestamp) -> SealedAuditRecord {
        let change = match action {
            AuditAction::FederationKeyRetired | AuditAction::FederationKeyRemoved => {
                AuditChange::new(ChangedField::Key, Some(kid), None)
            }
            _ => AuditChange::new(ChangedField::Key, None, Some(kid)),
        };
        let affected = Affected::from(Subject::Instance).changing([change]);
        self.environment.record(now, None, actor, action, affected)
    }
}

fn published(set: &FederationKeySet) -> Vec<Jwk> {
    set.keys().iter().map(|key| key.jwk.clone()).collect()
}
