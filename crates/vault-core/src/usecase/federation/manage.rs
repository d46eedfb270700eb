//! Commands of operators on signing keys.

use super::Federation;
use crate::audit::AuditAction;
use crate::entity::DocumentSecret;
use crate::error::{Error, Refusal};
use crate::federation::{
    FederationIssuer, FederationKey, Jwk, KeyActions, ListSigningKeys, PublicationChecks, SigningKeyChange,
    SigningKeys, StoredSigningKeys, key_set_document,
};
use secrecy::SecretString;

/// Signing keys of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationStatus {
    /// Its keys: by state, then newest first. Those that a restore retired are not published.
    pub keys: Vec<FederationKey>,
    /// Results of publication checks.
    pub checks: PublicationChecks,
    /// IDs of damaged documents. Their keys are neither published nor used.
    pub damaged: Vec<String>,
    /// Number of keys of other issuers.
    pub others: usize,
}

impl Federation {
    /// Returns the signing keys of `issuer`.
    ///
    /// # Errors
    /// The store failed.
    pub async fn status(&self, issuer: &FederationIssuer) -> Result<FederationStatus, Error> {
        let StoredSigningKeys { keys, checks, damaged, .. } = self.run(ListSigningKeys).await?;
        let damaged = damaged.iter().map(ToString::to_string).collect();
        let own: Vec<_> = keys.of(issuer).into_iter().cloned().collect();
        Ok(FederationStatus { others: keys.all().len() - own.len(), keys: own, checks, damaged })
    }

    /// Returns the discovery document and the key set of `issuer`.
    ///
    /// # Errors
    /// The store failed.
    pub async fn documents(&self, issuer: &FederationIssuer) -> Result<[String; 2], Error> {
        let keys = self.run(ListSigningKeys).await?.keys;
        Ok([issuer.discovery_document(), key_set_of(&keys, issuer)])
    }

    /// Adds a signing key in the state `next`, and removes the retired ones of the issuer. Returns its key ID, or `None` if
    /// `pem` is not an unencrypted RSA private key of 2,048 to 4,096 bits. Replaces a damaged document.
    ///
    /// # Errors
    /// [`NextExists`](crate::federation::FederationKeyError::NextExists) or
    /// [`Known`](crate::federation::FederationKeyError::Known).
    pub async fn add_key(&self, issuer: &FederationIssuer, pem: &SecretString) -> Result<Option<String>, Error> {
        let Some((jwk, private_key)) = self.importer.import(pem) else { return Ok(None) };
        let (kid, private_key) = (jwk.kid().to_owned(), DocumentSecret::from(private_key));
        let key = FederationKey::new(issuer.clone(), jwk, private_key, self.environment.now());
        self.change(SigningKeyChange::Add(key), false).await?;
        Ok(Some(kid))
    }

    /// Removes a key that is not current. It is no longer published when this returns.
    ///
    /// # Errors
    /// No key of `issuer` has this key ID, or it is current.
    pub async fn remove_key(&self, issuer: &FederationIssuer, kid: &str) -> Result<(), Error> {
        let (issuer, kid) = (issuer.clone(), kid.to_owned());
        self.change(SigningKeyChange::Remove { issuer, kid }, false).await.map(drop)
    }

    /// Promotes the next key. The replaced one stays published. Returns the key IDs of the new current key and of the retired
    /// ones. `is_forced` promotes it even if providers may not have read it.
    ///
    /// # Errors
    /// [`NoNext`](crate::federation::FederationKeyError::NoNext) or
    /// [`NotRead`](crate::federation::FederationKeyError::NotRead).
    pub async fn promote_key(
        &self,
        issuer: &FederationIssuer,
        is_forced: bool,
    ) -> Result<(String, Vec<String>), Error> {
        let promote = SigningKeyChange::Promote { issuer: issuer.clone(), is_forced };
        let actions = self.change(promote, false).await?;
        let promoted = of_action(&actions, AuditAction::FederationKeyPromoted).pop().unwrap_or_default();
        Ok((promoted, of_action(&actions, AuditAction::FederationKeyRetired)))
    }

    /// Retires all published keys, of any issuer, that are not among `kept`: after a restore, they may have leaked and been
    /// removed since the backup. Returns the key IDs.
    ///
    /// # Errors
    /// The store failed.
    pub async fn retire_others(&self, kept: &[Jwk]) -> Result<Vec<String>, Error> {
        let actions = self.change(SigningKeyChange::Keep(kept.to_vec()), false).await?;
        Ok(of_action(&actions, AuditAction::FederationKeyRetired))
    }

    /// Returns the public keys that are published, of any issuer.
    ///
    /// # Errors
    /// The store failed.
    pub async fn published_keys(&self) -> Result<Vec<Jwk>, Error> {
        let keys = self.run(ListSigningKeys).await?.keys;
        Ok(keys.all().iter().filter(|key| key.is_published).map(|key| key.jwk.clone()).collect())
    }

    /// Promotes the next key when providers have read it. Returns whether it did. If several processes call this, exactly
    /// one promotes the key.
    ///
    /// # Errors
    /// The store failed.
    pub async fn advance(&self, issuer: &FederationIssuer) -> Result<bool, Error> {
        let promote = SigningKeyChange::Promote { issuer: issuer.clone(), is_forced: false };
        match self.change(promote, true).await {
            Err(Error::Refused(Refusal::FederationKey(_))) => Ok(false),
            promoted => promoted.map(|_| true),
        }
    }
}

fn of_action(actions: &KeyActions, wanted: AuditAction) -> Vec<String> {
    actions.iter().filter(|(action, _)| *action == wanted).map(|(_, kid)| kid.clone()).collect()
}

pub(super) fn key_set_of(keys: &SigningKeys, issuer: &FederationIssuer) -> String {
    key_set_document(keys.published(issuer).into_iter().map(|key| &key.jwk))
}
