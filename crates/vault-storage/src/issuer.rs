//! Retrieval of the keys of identity token issuers (OpenID Connect Discovery 1.0).
//!
//! Operators choose the issuers, so private addresses are permitted. Redirects are not followed, and a discovery
//! document must be for the requested issuer.

use crate::guard::{Answer, GuardedClient, Resolve, SystemResolver};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use url::Url;
use vault_core::check::CheckReason;
use vault_core::identity::{Issuer, KeySource};
use vault_core::port::{FetchedKeys, IssuerFailure, IssuerKeys};

/// Maximum size of a discovery document in bytes.
const MAX_DOCUMENT: usize = 64 * 1024;
/// Maximum size of a key set in bytes.
const MAX_KEY_SET: usize = 1024 * 1024;

/// Client for the keys of issuers.
pub struct IssuerClient {
    resolver: Arc<dyn Resolve>,
}

impl Default for IssuerClient {
    fn default() -> Self {
        Self { resolver: Arc::new(SystemResolver::new()) }
    }
}

impl fmt::Debug for IssuerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuerClient")
    }
}

/// The evaluated fields of a discovery document.
#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

#[async_trait]
impl IssuerKeys for IssuerClient {
    async fn fetch(&self, issuer: &Issuer) -> Result<FetchedKeys, IssuerFailure> {
        let client = GuardedClient::for_operator(&issuer.ca, Arc::clone(&self.resolver), MAX_KEY_SET);
        let client = client.ok_or(IssuerFailure("its certificates cannot be used"))?;
        let (address, source) = match &issuer.source {
            KeySource::Url(url) => (url.clone(), issuer.source.clone()),
            KeySource::Discovery(known) => {
                let address = discover(&client, &issuer.url).await?;
                let origin = Url::parse(&address).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
                if !known.is_empty() && origin != *known {
                    return Err(IssuerFailure(
                        "its discovery document names another host for the keys than when it was added",
                    ));
                }
                (address, KeySource::Discovery(origin))
            }
            KeySource::Pasted => return Err(IssuerFailure("its keys were pasted and are not fetched")),
        };
        let answer = get(&client, &address).await?;
        let keys = answer.text().map(str::to_owned).ok_or(IssuerFailure("its keys are too long or no text"))?;
        Ok(FetchedKeys { keys, source })
    }
}

/// Returns the URL of the issuer's keys from its discovery document.
async fn discover(client: &GuardedClient, issuer: &str) -> Result<String, IssuerFailure> {
    let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let answer = get(client, &address).await?;
    let found = answer.text().filter(|text| text.len() <= MAX_DOCUMENT);
    let found: Option<Discovered> = found.and_then(|text| serde_json::from_str(text).ok());
    let found = found.ok_or(IssuerFailure("its discovery document is none"))?;
    if found.issuer != issuer {
        return Err(IssuerFailure("its discovery document is another issuer's: compare the URL, to the last slash"));
    }
    Ok(found.jwks_uri)
}

async fn get(client: &GuardedClient, address: &str) -> Result<Answer, IssuerFailure> {
    if !is_safe(address) {
        return Err(IssuerFailure("its keys are not at an https address"));
    }
    let request = Request::get(address).header(header::ACCEPT, "application/json").body(Bytes::new());
    let request = request.map_err(|_| IssuerFailure("its address is none"))?;
    let answer = client.send(request).await.map_err(|reason| IssuerFailure(why(reason)))?;
    match answer.status {
        StatusCode::OK => Ok(answer),
        status if status.is_redirection() => Err(IssuerFailure("it redirects, which is not followed")),
        _ => Err(IssuerFailure("it returns an error")),
    }
}

/// Returns whether no network attacker can modify the response: https, or a connection to this host.
fn is_safe(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_local = host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}

const fn why(reason: CheckReason) -> &'static str {
    match reason {
        CheckReason::Dns => "its host name does not resolve",
        CheckReason::Tls => "its certificate is not trusted",
        CheckReason::Unreachable => "it does not respond",
        _ => "its response is invalid",
    }
}
