//! Retrieval of the keys of identity token issuers (OpenID Connect Discovery 1.0).
//!
//! Operators choose the issuers, so an issuer may have a private address. Its discovery document may name one for the
//! keys only if it was fetched from one too. Behind a proxy, a name without a special or local use counts as public. Redirects
//! are not followed, and a discovery document must be for the requested issuer.

use crate::guard::{Answer, GuardedClient, Proxy, Resolve, SystemResolver};
use crate::{Egress, EgressPolicy};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use serde::Deserialize;
use std::borrow::Cow;
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
    egress: Egress,
    resolver: Arc<dyn Resolve>,
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
        let client = self.client(self.egress.for_operator(), issuer)?;
        let (client, address, source) = match &issuer.source {
            KeySource::Url(url) => (client, url.clone(), issuer.source.clone()),
            KeySource::Discovery(known) => {
                let (address, peer) = discover(&client, &issuer.url).await?;
                let origin = Url::parse(&address).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
                if !known.is_empty() && origin != *known {
                    return Err(failure(
                        "its discovery document names another host for the keys than when it was added",
                    ));
                }
                let egress = self.egress_of_keys(&issuer.url, &address, self.is_public(&issuer.url, peer))?;
                (self.client(egress, issuer)?, address, KeySource::Discovery(origin))
            }
            KeySource::Pasted => return Err(failure("its keys were pasted and are not fetched")),
        };
        let answer = get(&client, &address).await?;
        let keys = answer.text().map(str::to_owned).ok_or_else(|| failure("its keys are too long or no text"))?;
        Ok(FetchedKeys { keys, source })
    }
}

impl IssuerClient {
    /// Creates a client that uses the proxy of `egress`, if any. Operators choose the issuers, so its policy does not
    /// apply.
    pub fn new(egress: &Egress) -> Self {
        Self { egress: egress.clone(), resolver: Arc::new(SystemResolver::new()) }
    }

    fn client(&self, egress: Egress, issuer: &Issuer) -> Result<GuardedClient, IssuerFailure> {
        let client = GuardedClient::for_operator(egress, &issuer.ca, Arc::clone(&self.resolver), MAX_KEY_SET);
        client.ok_or_else(|| failure("its certificates cannot be used"))
    }

    /// Returns whether the host of a URL is public: the address that was connected to, or its name if the proxy connected.
    fn is_public(&self, url: &str, peer: Option<IpAddr>) -> bool {
        let by_name = || {
            let host = Url::parse(url).ok()?.host_str()?.to_owned();
            self.egress.is_public_if_proxied(&host)
        };
        peer.map_or_else(|| by_name().unwrap_or(true), |address| EgressPolicy::public_only().permits(address))
    }

    /// Returns where the keys may be fetched, if the discovery document of `issuer` names the URL `keys`. An issuer on
    /// the Internet must not choose an address of a private network, or a connection without TLS, that the operator did
    /// not.
    fn egress_of_keys(&self, issuer: &str, keys: &str, issuer_is_public: bool) -> Result<Egress, IssuerFailure> {
        let is_plain = |url: &str| url.starts_with("http:");
        if is_plain(keys) && !is_plain(issuer) {
            return Err(failure("its discovery document names an http address for the keys"));
        }
        Ok(if issuer_is_public { self.egress.for_public_host() } else { self.egress.for_operator() })
    }
}

const fn failure(text: &'static str) -> IssuerFailure {
    IssuerFailure(Cow::Borrowed(text))
}

/// Returns the URL of the issuer's keys from its discovery document, and the address that the document was fetched from.
async fn discover(client: &GuardedClient, issuer: &str) -> Result<(String, Option<IpAddr>), IssuerFailure> {
    let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let answer = get(client, &address).await?;
    let found = answer.text().filter(|text| text.len() <= MAX_DOCUMENT);
    let found: Option<Discovered> = found.and_then(|text| serde_json::from_str(text).ok());
    let found = found.ok_or_else(|| failure("its response is not a discovery document"))?;
    if found.issuer != issuer {
        return Err(failure("its discovery document is another issuer's: compare the URL, to the last slash"));
    }
    Ok((found.jwks_uri, answer.peer))
}

async fn get(client: &GuardedClient, address: &str) -> Result<Answer, IssuerFailure> {
    if !is_safe(address) {
        return Err(failure("its keys are not at an https address"));
    }
    let request = Request::get(address).header(header::ACCEPT, "application/json").body(Bytes::new());
    let request = request.map_err(|_| failure("its URL is not valid"))?;
    let answer = client.send(request).await.map_err(|reason| why(reason, client.proxy()))?;
    match answer.status {
        StatusCode::OK => Ok(answer),
        status if status.is_redirection() => Err(failure("it redirects, which is not followed")),
        _ => Err(failure("it returns an error")),
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

fn why(reason: CheckReason, proxy: Option<&Proxy>) -> IssuerFailure {
    if let Some(proxy) = proxy.filter(|_| reason.is_of_proxy()) {
        let url = proxy.url();
        let text = match reason {
            CheckReason::ProxyUnreachable => format!("this server's outgoing proxy {url} does not respond"),
            CheckReason::ProxyCredentials => format!("this server's outgoing proxy {url} refuses its credentials"),
            _ => format!("this server's outgoing proxy {url} does not permit its host or port"),
        };
        return IssuerFailure(text.into());
    }
    failure(match reason {
        CheckReason::Dns => "its host name does not resolve",
        CheckReason::BlockedEgress => "its keys are at an address in a private network, and it is not",
        CheckReason::Tls => "its certificate is not trusted",
        CheckReason::Unreachable => "it does not respond",
        _ => "its response is invalid",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_issuer_cannot_use_private_address() {
        let client = IssuerClient::new(&Egress::default());
        let egress = |issuer: &str, keys: &str, is_public| client.egress_of_keys(issuer, keys, is_public);
        let public = egress("https://issuer.example", "https://keys.example/jwks", true).unwrap();
        assert!(!public.policy().permits("10.0.0.1".parse().unwrap()));
        assert!(!public.policy().permits("127.0.0.1".parse().unwrap()));
        let own = egress("https://kubernetes.default.svc", "https://10.0.0.1:6443/openid/v1/jwks", false).unwrap();
        assert!(own.policy().permits("10.0.0.1".parse().unwrap()));
        assert!(egress("https://issuer.example", "http://127.0.0.1:2375/keys", true).is_err());
        assert!(egress("https://issuer.example", "http://127.0.0.1:2375/keys", false).is_err());
        assert!(egress("http://127.0.0.1:8000", "http://127.0.0.1:8000/keys", false).is_ok());
    }

    /// A name with a public and a private address is public if its document comes from the public one.
    #[test]
    fn issuer_is_private_only_if_connected_at_private_address() {
        let client = IssuerClient::new(&Egress::default());
        let is_public = |address: &str| client.is_public("https://issuer.example", Some(address.parse().unwrap()));
        assert!(is_public("8.8.8.8") && is_public("2600::1"));
        for private in ["10.0.0.1", "127.0.0.1", "::1", "fd00::1"] {
            assert!(!is_public(private), "{private}");
        }
        let proxy = Proxy::new("http://proxy.example".parse().unwrap(), None).unwrap();
        let client = IssuerClient::new(&Egress::through(proxy, Vec::new(), Vec::new()));
        for public in ["https://8.8.8.8/", "https://issuer.example"] {
            assert!(client.is_public(public, None), "{public}");
        }
        for private in ["https://10.0.0.1/", "https://issuer.internal", "https://issuer"] {
            assert!(!client.is_public(private, None), "{private}");
        }
    }
}
