//! The keys that a server publishes and signs with.

use super::Federation;
use super::manage::key_set_of;
use crate::entity::EntityKey;
use crate::error::Error;
use crate::federation::{FederationIssuer, FederationKey, ListSigningKeys, SigningKeys, key_set_document};
use crate::port::{Event, FederationSigningKey};
use std::sync::{Arc, PoisonError, RwLock};
use uuid::Uuid;

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

    fn set(&self, keys: &SigningKeys) {
        let document = key_set_of(keys, &self.issuer);
        *self.key_set.write().unwrap_or_else(PoisonError::into_inner) = document.into();
    }
}

/// Reads the signing keys of a server once a second.
pub struct FederationPublisher {
    federation: Federation,
    published: Arc<PublishedKeys>,
    signing: Option<Arc<dyn FederationSigningKey>>,
    /// Document in use.
    document: Option<(Uuid, i64)>,
    damaged: Vec<Uuid>,
    /// Keys as last read.
    keys: SigningKeys,
    is_found: bool,
}

impl FederationPublisher {
    /// Creates a publisher to `published`. A process with the activation listener also signs with `signing`.
    pub fn new(
        federation: Federation,
        published: Arc<PublishedKeys>,
        signing: Option<Arc<dyn FederationSigningKey>>,
    ) -> Self {
        let (keys, damaged) = (SigningKeys::default(), Vec::new());
        Self { federation, published, signing, document: None, damaged, keys, is_found: true }
    }

    /// Reads the keys, and publishes and selects the valid ones.
    ///
    /// # Errors
    /// The store failed. The previous keys stay in use.
    pub async fn refresh(&mut self) -> Result<(), Error> {
        let stored = self.federation.run(ListSigningKeys).await?;
        for id in stored.damaged.iter().filter(|id| !self.damaged.contains(id)) {
            let event = Event::IntegrityFailure { table: EntityKey::TABLE, id: id.to_string() };
            self.federation.environment.emit(event);
        }
        self.damaged = stored.damaged;
        let issuer = self.published.issuer();
        let failed =
            |key: &&FederationKey| stored.checks.of(key.kid()).is_some_and(|checked| checked.failure.is_some());
        self.is_found = !stored.keys.published(issuer).iter().any(failed);
        if self.document != stored.document {
            if let Some(signing) = &self.signing {
                signing.select(stored.keys.signing(issuer));
            }
            self.published.set(&stored.keys);
            (self.document, self.keys) = (stored.document, stored.keys);
        }
        Ok(())
    }

    /// Returns whether the last publication check, of any process, had no finding.
    pub const fn is_found(&self) -> bool {
        self.is_found
    }

    /// Returns the keys of the issuer as last read, for metrics.
    pub fn keys(&self) -> Vec<&FederationKey> {
        self.keys.published(self.published.issuer())
    }
}
