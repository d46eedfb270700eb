//! Ports for the signing keys of federation tokens: their import and use, and the check of their publication.

use crate::federation::{FederationIssuer, FederationKey, Jwk, PublicationFailure, PublishedDocuments};
use async_trait::async_trait;
use secrecy::SecretString;

/// Port that reads signing keys. Without I/O.
pub trait FederationKeyImporter: Send + Sync {
    /// Returns the public key of an unencrypted RSA private key (PKCS #8 in PEM, 2,048 to 4,096 bits, exponent 65537), and
    /// the private key as a [`FederationKey`] contains it. Returns `None` if the text is no such key.
    fn import(&self, pem: &SecretString) -> Option<(Jwk, SecretString)>;
}

/// Port that receives the key with which federation tokens are signed.
pub trait FederationSigningKey: Send + Sync {
    /// Signs with this key from now on, or with none.
    fn select(&self, key: Option<&FederationKey>);
}

/// Port that reads the published documents as providers do.
#[async_trait]
pub trait IssuerPublication: Send + Sync {
    /// Fetches the discovery document, and the key set that it names if its URL is
    /// [below the issuer](FederationIssuer::published_key_set_url).
    ///
    /// # Errors
    /// The finding if a document cannot be fetched or names no such key set.
    async fn fetch(&self, issuer: &FederationIssuer) -> Result<PublishedDocuments, PublicationFailure>;
}
