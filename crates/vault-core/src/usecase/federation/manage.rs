//! Commands of operators on signing keys.

use super::{Change, Federation, VerifiedKeys, published};
use crate::audit::{Actor, AuditAction};
use crate::error::Error;
use crate::federation::{
    FederationIssuer, FederationKey, FederationKeyError, FederationKeyState, Jwk, StoredFederationKey, key_set_document,
};
use crate::id::KeyId;
use crate::time::Timestamp;
use secrecy::SecretString;

/// Signing keys of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationStatus {
    /// Valid keys, which are published: by state, then newest first.
    pub keys: Vec<StoredFederationKey>,
    /// Keys that a restore retired. They are not published.
    pub unpublished: Vec<FederationKey>,
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

/// Key IDs of retired signing keys.
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
        let unpublished = keys.dropped_of(issuer).cloned().collect();
        Ok(FederationStatus { keys: rows, unpublished, damaged: keys.damaged, others })
    }

    /// Returns the discovery document and the key set of `issuer`.
    ///
    /// # Errors
    /// The store failed.
    pub async fn documents(&self, issuer: &FederationIssuer) -> Result<[String; 2], Error> {
        let keys = published(&self.read().await?.of(issuer));
        Ok([issuer.discovery_document(), key_set_document(&keys)])
    }

    /// Adds a signing key in the state `next`, and removes the retired ones. Returns its key ID, or `None` if `pem` is not
    /// an unencrypted RSA private key of 2,048 to 4,096 bits.
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
            let set = keys.of(issuer);
            let key = set.add(id, issuer, jwk, now)?;
            let change = Change::default().record(AuditAction::FederationKeyAdded, &key);
            let change = set.retired().chain(keys.dropped_of(issuer)).fold(change, Change::remove);
            Ok(Some((key.jwk.kid().to_owned(), Change { added: Some((key, private_key)), ..change })))
        })
        .await
    }

    /// Removes a key that is not current. It is no longer published when this returns.
    ///
    /// # Errors
    /// No key of `issuer` has this key ID, or it is current.
    pub async fn remove_key(&self, issuer: &FederationIssuer, kid: &str) -> Result<(), Error> {
        let changed = self.change(Actor::Operator, |keys, _| {
            let set = keys.of(issuer);
            let unpublished = keys.dropped_of(issuer).find(|key| key.jwk.kid() == kid);
            let key = unpublished.map_or_else(|| set.remove(kid), Ok)?;
            Ok(Some(((), Change::default().remove(key))))
        });
        changed.await.map(drop)
    }

    /// Promotes the next key. The replaced one stays published. Returns the key IDs of the new current key and of the retired
    /// ones. `is_forced` promotes it even if providers may not have read it.
    ///
    /// # Errors
    /// [`FederationKeyError::NoNext`] or [`NotRead`](FederationKeyError::NotRead).
    pub async fn promote_key(
        &self,
        issuer: &FederationIssuer,
        is_forced: bool,
    ) -> Result<(String, RetiredKeys), Error> {
        let promoted = self.change(Actor::Operator, |keys, now| Ok(Some(promotion(keys, issuer, is_forced, now)?)));
        Ok(promoted.await?.unwrap_or_default())
    }

    /// Retires all published keys, of any issuer, that are not among `kept`: after a restore, they may have leaked and been
    /// removed since the backup. Returns the key IDs.
    ///
    /// # Errors
    /// The store failed.
    pub async fn retire_others(&self, kept: &[Jwk]) -> Result<RetiredKeys, Error> {
        let changed = self.change(Actor::Operator, |keys, now| {
            let others = keys.valid.iter().map(|row| &row.key).filter(|key| !kept.contains(&key.jwk));
            let changed: Vec<_> = others.map(|key| key.retire(now)).collect();
            let dropped = changed.iter().map(|key| key.id).collect();
            let (retired, change) = changed_states(changed);
            Ok((!retired.is_empty()).then_some((retired, Change { dropped, ..change })))
        });
        Ok(changed.await?.unwrap_or_default())
    }

    /// Returns the public keys that are published, of any issuer.
    ///
    /// # Errors
    /// The store failed.
    pub async fn published_keys(&self) -> Result<Vec<Jwk>, Error> {
        Ok(self.read().await?.valid.into_iter().map(|row| row.key.jwk).collect())
    }

    /// Promotes the next key when providers have read it. Returns whether it did. If several processes call this, exactly
    /// one promotes the key.
    ///
    /// # Errors
    /// The store failed.
    pub async fn advance(&self, issuer: &FederationIssuer) -> Result<bool, Error> {
        let promoted = self.change(Actor::System, |keys, now| Ok(promotion(keys, issuer, false, now).ok()));
        Ok(promoted.await?.is_some())
    }
}

fn promotion(
    keys: &VerifiedKeys,
    issuer: &FederationIssuer,
    is_forced: bool,
    now: Timestamp,
) -> Result<((String, RetiredKeys), Change), FederationKeyError> {
    let was_found = |key: &FederationKey| keys.find(key.id).is_some_and(|row| row.was_found(now));
    let changed = keys.of(issuer).promote(was_found, is_forced, now)?;
    let promoted = changed.first().map(|key| key.jwk.kid().to_owned()).unwrap_or_default();
    let (retired, change) = changed_states(changed);
    Ok(((promoted, retired), change))
}

/// Returns the change of these rows, which became current or retired, and the key IDs of the retired ones.
fn changed_states(changed: Vec<FederationKey>) -> (RetiredKeys, Change) {
    let is_retired = |key: &FederationKey| key.state == FederationKeyState::Retired;
    let retired = changed.iter().filter(|key| is_retired(key)).map(|key| key.jwk.kid().to_owned()).collect();
    let change = changed.iter().fold(Change::default(), |change, key| {
        let action =
            if is_retired(key) { AuditAction::FederationKeyRetired } else { AuditAction::FederationKeyPromoted };
        change.record(action, key)
    });
    (retired, Change { changed, ..change })
}
