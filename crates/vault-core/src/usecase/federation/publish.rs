//! The keys that a server publishes and signs with.

use super::{Federation, Rows, published};
use crate::error::Error;
use crate::federation::{FederationIssuer, FederationKey, Jwk, StoredFederationKey, key_set_document};
use crate::id::KeyId;
use crate::port::{Event, FederationSigningKey};
use std::sync::{Arc, PoisonError, RwLock};

/// The documents of an issuer, for a listener that serves them from memory. It contains neither private keys nor ports.
#[derive(Debug)]
pub struct PublishedKeys {
    issuer: FederationIssuer,
    discovery: String,
    key_set: RwLock<Arc<str>>,
}

impl PublishedKeys {
    /// Creates the documents of `issuer` without keys.
    pub fn new(issuer: FederationIssuer) -> Self {
        let key_set = RwLock::new(key_set_document([]).into());
        Self { discovery: issuer.discovery_document(), issuer, key_set }
    }

    /// Returns the issuer.
    pub const fn issuer(&self) -> &FederationIssuer {
        &self.issuer
    }

    /// Returns the discovery document.
    pub fn discovery_document(&self) -> &str {
        &self.discovery
    }

    /// Returns the key set document.
    pub fn key_set_document(&self) -> Arc<str> {
        // The value is replaced as a whole, so a poisoned lock contains a consistent one.
        Arc::clone(&self.key_set.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, keys: &[Jwk]) {
        *self.key_set.write().unwrap_or_else(PoisonError::into_inner) = key_set_document(keys).into();
    }
}

/// Reads the signing keys of a server once a second.
pub struct FederationPublisher {
    federation: Federation,
    published: Arc<PublishedKeys>,
    signing: Option<Arc<dyn FederationSigningKey>>,
    /// Rows and named keys as last verified, so that unchanged ones are not decrypted again.
    seen: Option<(Rows, Vec<KeyId>)>,
    damaged: Vec<String>,
    /// Published keys as last read.
    keys: Vec<FederationKey>,
    is_found: bool,
}

impl FederationPublisher {
    /// Creates a publisher to `published`. A process with the activation listener also signs with `signing`.
    pub fn new(
        federation: Federation,
        published: Arc<PublishedKeys>,
        signing: Option<Arc<dyn FederationSigningKey>>,
    ) -> Self {
        Self { federation, published, signing, seen: None, damaged: Vec::new(), keys: Vec::new(), is_found: true }
    }

    /// Reads the keys, and publishes and selects the valid ones.
    ///
    /// # Errors
    /// The store failed. The previous keys stay in use.
    pub async fn refresh(&mut self) -> Result<(), Error> {
        let Federation { environment, store, crypto } = &self.federation;
        crypto.digester.refresh().await?;
        let rows = store.federation_keys().await?;
        self.is_found = !rows.iter().flatten().any(|row| self.lacks_publication(row));
        if self.seen.as_ref().is_some_and(|seen| *seen == (without_checks(&rows), crypto.verifier.named())) {
            return Ok(());
        }
        let (rows, keys) = self.federation.verify_or_reread(rows).await?;
        let set = keys.of(self.published.issuer());
        if let Some(signing) = &self.signing {
            signing.select(set.signing().and_then(|key| keys.find(key.id)))?;
        }
        self.published.set(&published(&set));
        for id in keys.damaged.iter().filter(|id| !self.damaged.contains(id)) {
            environment.emit(Event::IntegrityFailure { table: "federation_keys", id: id.clone() });
        }
        self.keys = set.keys().to_vec();
        self.damaged = keys.damaged;
        self.seen = Some((without_checks(&rows), crypto.verifier.named()));
        Ok(())
    }

    /// Returns whether the last publication check, of any process, had no finding.
    pub const fn is_found(&self) -> bool {
        self.is_found
    }

    fn lacks_publication(&self, row: &StoredFederationKey) -> bool {
        let is_published = self.federation.crypto.verifier.named().contains(&row.key.id);
        row.key.issuer == *self.published.issuer() && is_published && row.failure.is_some()
    }

    /// Returns the published keys as last read, for metrics.
    pub fn keys(&self) -> &[FederationKey] {
        &self.keys
    }
}

/// Returns the rows without the findings of publication checks, which do not affect whether a key is valid.
fn without_checks(rows: &Rows) -> Rows {
    let without = |row: &StoredFederationKey| StoredFederationKey { checked_at: None, failure: None, ..row.clone() };
    rows.iter().map(|row| row.as_ref().map(without).map_err(Clone::clone)).collect()
}
