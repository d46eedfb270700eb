//! Commands of operators on signing keys.

use super::{Change, Federation, published};
use crate::audit::{Actor, AuditAction};
use crate::error::Error;
use crate::federation::{
    FederationIssuer, FederationKey, FederationKeyError, FederationKeyState, Jwk, StoredFederationKey, key_set_document,
};
use crate::id::KeyId;
use secrecy::SecretString;
use std::collections::BTreeSet;

/// Signing keys of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationStatus {
    /// Valid keys: by state, then newest first.
    pub keys: Vec<StoredFederationKey>,
    /// IDs of damaged rows. They are neither published nor used.
    pub damaged: Vec<String>,
    /// Number of valid keys of other issuers.
    pub others: usize,
}

impl FederationStatus {
    /// Returns the current key.
    pub fn signing(&self) -> Option<&StoredFederationKey> {
        self.in_state(FederationKeyState::Current)
    }

    /// Returns the next key.
    pub fn next(&self) -> Option<&StoredFederationKey> {
        self.in_state(FederationKeyState::Next)
    }

    fn in_state(&self, state: FederationKeyState) -> Option<&StoredFederationKey> {
        self.keys.iter().find(|row| row.key.state == state)
    }
}

/// Key IDs of signing keys that were retired because they may have leaked.
pub type RetiredKeys = Vec<String>;

impl Federation {
    /// Returns the signing keys of `issuer`.
    ///
    /// # Errors
    /// The store failed.
    pub async fn status(&self, issuer: &FederationIssuer) -> Result<FederationStatus, Error> {
        let keys = self.read().await?;
        let set = keys.of(issuer);
        let rows: Vec<_> = set.keys().iter().filter_map(|key| keys.find(key.id).cloned()).collect();
        let others = keys.valid.len() - rows.len();
        Ok(FederationStatus { keys: rows, damaged: keys.damaged, others })
    }

    /// Returns the discovery document and the key set of `issuer`.
    ///
    /// # Errors
    /// The store failed.
    pub async fn documents(&self, issuer: &FederationIssuer) -> Result<[String; 2], Error> {
        let keys = published(&self.read().await?.of(issuer));
        Ok([issuer.discovery_document(), key_set_document(&keys)])
    }

    /// Adds a signing key in the state `next`. Returns its key ID, or `None` if `pem` is not an unencrypted RSA private key
    /// of 2,048 to 4,096 bits.
    ///
    /// # Errors
    /// [`FederationKeyError::NextExists`] or
    /// [`Known`](crate::federation::FederationKeyError::Known).
    pub async fn add_key(&self, issuer: &FederationIssuer, pem: &SecretString) -> Result<Option<String>, Error> {
        self.change(Actor::Operator, |keys, now| {
            let id = KeyId::from_uuid(self.environment.ids.random());
            let Some((jwk, private_key)) = self.crypto.sealer.import(id, pem)? else { return Ok(None) };
            if keys.dropped.iter().any(|key| key.jwk == jwk) {
                return Err(FederationKeyError::Known(jwk.kid().to_owned()).into());
            }
            let key = keys.of(issuer).add(id, issuer, jwk, now)?;
            let change = Change::default().record(AuditAction::FederationKeyAdded, &key);
            Ok(Some((key.jwk.kid().to_owned(), Change { added: Some((key, private_key)), ..change })))
        })
        .await
    }

    /// Records that the key set with this key was uploaded to every provider that does not fetch it.
    ///
    /// # Errors
    /// No published key of `issuer` has this key ID.
    pub async fn confirm_key(&self, issuer: &FederationIssuer, kid: &str) -> Result<(), Error> {
        let changed = self.change(Actor::Operator, |keys, now| {
            let key = keys.of(issuer).confirm(kid, now)?;
            let change = Change::default().record(AuditAction::FederationKeyConfirmed, &key);
            Ok(Some(((), Change { changed: vec![key], ..change })))
        });
        changed.await.map(drop)
    }

    /// Removes a key that is not current. It is no longer published when this returns.
    ///
    /// # Errors
    /// No key of `issuer` has this key ID, or it is current.
    pub async fn remove_key(&self, issuer: &FederationIssuer, kid: &str) -> Result<(), Error> {
        let changed = self.change(Actor::Operator, |keys, _| {
            let key = keys.of(issuer).remove(kid)?.clone();
            let change = Change::default().record(AuditAction::FederationKeyRemoved, &key);
            Ok(Some(((), Change { dropped: vec![key.id], removed: vec![key], ..change })))
        });
        changed.await.map(drop)
    }

    /// Promotes the next key and retires the current one immediately. Returns the key IDs of the new current key and of the
    /// retired ones.
    ///
    /// # Errors
    /// [`FederationKeyError::NoNext`].
    pub async fn rotate_now(&self, issuer: &FederationIssuer) -> Result<(String, RetiredKeys), Error> {
        let rotated = self.change(Actor::Operator, |keys, now| {
            let changed = keys.of(issuer).rotate(now)?;
            let promoted = changed.iter().find(|key| key.state == FederationKeyState::Current);
            let promoted = promoted.map(|key| key.jwk.kid().to_owned()).unwrap_or_default();
            let change = changed_states(changed);
            let retired = retired(&change.changed);
            let dropped = ids_of(&change.changed, FederationKeyState::Retired);
            Ok(Some(((promoted, retired), Change { dropped, ..change })))
        });
        Ok(rotated.await?.unwrap_or_default())
    }

    /// Removes all retired keys, and rows of keys that a rotation dropped from the keyring. Returns the key IDs.
    ///
    /// # Errors
    /// The store failed.
    pub async fn prune_keys(&self) -> Result<RetiredKeys, Error> {
        let pruned = self.change(Actor::Operator, |keys, _| {
            let retired_keys = keys.valid.iter().map(|row| &row.key).filter(|key| !key.is_published());
            let removed: Vec<_> = retired_keys.chain(&keys.dropped).cloned().collect();
            if removed.is_empty() {
                return Ok(None);
            }
            let record = |change: Change, key: &FederationKey| change.record(AuditAction::FederationKeyRemoved, key);
            let change = removed.iter().fold(Change::default(), record);
            let dropped = removed.iter().map(|key| key.id).collect();
            Ok(Some((retired(&removed), Change { dropped, removed, ..change })))
        });
        Ok(pruned.await?.unwrap_or_default())
    }

    /// Retires all published keys, of any issuer, that are not among `kept`: after a restore, they may have leaked and been
    /// removed since the backup. Returns the key IDs.
    ///
    /// # Errors
    /// The store failed.
    pub async fn retire_others(&self, kept: &[Jwk]) -> Result<RetiredKeys, Error> {
        let changed = self.change(Actor::Operator, |keys, now| {
            let issuers: BTreeSet<&str> = keys.valid.iter().map(|row| row.key.issuer.as_str()).collect();
            let mut changed = Vec::new();
            for issuer in issuers {
                let Some(row) = keys.valid.iter().find(|row| row.key.issuer.as_str() == issuer) else { continue };
                changed.extend(keys.of(&row.key.issuer).retire_others(|key| kept.contains(&key.jwk), now));
            }
            if changed.is_empty() {
                return Ok(None);
            }
            let change = changed_states(changed);
            let dropped = ids_of(&change.changed, FederationKeyState::Retired);
            Ok(Some((retired(&change.changed), Change { dropped, ..change })))
        });
        Ok(changed.await?.unwrap_or_default())
    }

    /// Returns the public keys that are published, of any issuer.
    ///
    /// # Errors
    /// The store failed.
    pub async fn published_keys(&self) -> Result<Vec<Jwk>, Error> {
        let keys = self.read().await?;
        Ok(keys.valid.iter().filter(|row| row.key.is_published()).map(|row| row.key.jwk.clone()).collect())
    }

    /// Makes the changes that are due: retires previous keys, and promotes the next key when providers have read it.
    /// Returns whether a key was changed. If several processes call this, exactly one makes each change.
    ///
    /// # Errors
    /// The store failed.
    pub async fn advance(&self, issuer: &FederationIssuer) -> Result<bool, Error> {
        let changed = self.change(Actor::System, |keys, now| {
            let was_found = |key: &FederationKey| keys.find(key.id).is_some_and(|row| row.was_found(now));
            let changed = keys.of(issuer).due(was_found, now);
            Ok((!changed.is_empty()).then(|| ((), changed_states(changed))))
        });
        Ok(changed.await?.is_some())
    }
}

/// Returns the change of these rows, with an entry for each key that became current or retired.
fn changed_states(changed: Vec<FederationKey>) -> Change {
    let change = changed.iter().fold(Change::default(), |change, key| match key.state {
        FederationKeyState::Current => change.record(AuditAction::FederationKeyPromoted, key),
        FederationKeyState::Retired => change.record(AuditAction::FederationKeyRetired, key),
        FederationKeyState::Next | FederationKeyState::Previous => change,
    });
    Change { changed, ..change }
}

fn ids_of(keys: &[FederationKey], state: FederationKeyState) -> Vec<KeyId> {
    keys.iter().filter(|key| key.state == state).map(|key| key.id).collect()
}

fn retired(keys: &[FederationKey]) -> RetiredKeys {
    let retired = keys.iter().filter(|key| key.state == FederationKeyState::Retired);
    retired.map(|key| key.jwk.kid().to_owned()).collect()
}
