//! Retrieval of the published documents of the federation issuer, as providers read them.

use crate::guard::{Answer, GuardedClient, SystemResolver, TrustError};
use crate::{Egress, StorageSettings};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use std::fmt;
use std::sync::Arc;
use vault_core::federation::{FederationIssuer, PublicationFailure, PublishedDocuments};
use vault_core::port::IssuerPublication;

/// Client for the published documents of the federation issuer. The operator chooses its host, so the host may have a private
/// address. Redirects are not followed.
pub struct PublicationClient(GuardedClient);

impl fmt::Debug for PublicationClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicationClient")
    }
}

impl PublicationClient {
    /// Creates a client that uses the proxy of `egress`, if any.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn new(egress: &Egress) -> Result<Self, TrustError> {
        let settings = StorageSettings { egress: egress.for_operator(), ..StorageSettings::default() };
        Ok(Self(GuardedClient::new(&settings, Arc::new(SystemResolver::new()))?))
    }

    async fn get(&self, url: &str) -> Result<Answer, PublicationFailure> {
        let request = Request::get(url).header(header::ACCEPT, "application/json").body(Bytes::new());
        let request = request.map_err(|_| PublicationFailure::Unreachable)?;
        let answer = self.0.send(request).await.map_err(|_| PublicationFailure::Unreachable)?;
        let is_found = answer.status == StatusCode::OK && answer.is_whole;
        is_found.then_some(answer).ok_or(PublicationFailure::Unreachable)
    }
}

#[async_trait]
impl IssuerPublication for PublicationClient {
    async fn fetch(&self, issuer: &FederationIssuer) -> Result<PublishedDocuments, PublicationFailure> {
        let discovery = self.get(&issuer.discovery_url()).await?.body.to_vec();
        let url = issuer.published_key_set_url(&discovery).ok_or(PublicationFailure::IssuerDiffers)?;
        let answer = self.get(&url).await?;
        let cache_control = answer.header(header::CACHE_CONTROL.as_str()).map(str::to_owned);
        Ok(PublishedDocuments { discovery, key_set: answer.body.to_vec(), cache_control })
    }
}
