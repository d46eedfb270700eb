//! Export of audit entries and traces to a server that the operator has configured.

use crate::guard::{GuardedClient, SystemResolver};
use crate::{Egress, StorageSettings, TrustError};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use vault_core::check::CheckReason;

/// Maximum duration of a request.
const DEADLINE: Duration = Duration::from_secs(60);

/// A client that posts to one URL. Cheap to clone.
#[derive(Clone)]
pub struct ExportClient {
    client: GuardedClient,
    url: Arc<str>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for ExportClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExportClient({})", self.url)
    }
}

/// An error of an export. The messages contain URLs, but no header values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A header has an invalid name or value.
    #[error("header {0} has an invalid name or value")]
    Header(String),
    /// The system's certificates cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The server responded with an error or a redirect.
    #[error("{url} returned status {status}")]
    Status {
        /// URL of the server.
        url: Arc<str>,
        /// Status of the response.
        status: StatusCode,
    },
    /// The server cannot be reached.
    #[error("{url} cannot be reached: {}", .reason.as_str())]
    Unreachable {
        /// URL of the server.
        url: Arc<str>,
        /// Cause of the failure.
        reason: CheckReason,
    },
    /// The outgoing proxy opens no tunnel to the server.
    #[error("{url} cannot be reached through the outgoing proxy {proxy}: {}", .reason.as_str())]
    Proxy {
        /// URL of the server.
        url: Arc<str>,
        /// URL of the proxy.
        proxy: String,
        /// Cause of the failure.
        reason: CheckReason,
    },
}

impl ExportClient {
    /// Creates a client for `url`, with these header fields in each request. Operators choose the URL, so the policy of
    /// `egress` does not apply.
    ///
    /// # Errors
    /// [`ExportError::Header`] and [`ExportError::Trust`].
    pub fn new(egress: &Egress, url: &str, headers: &[(String, SecretString)]) -> Result<Self, ExportError> {
        let mut settings = StorageSettings { egress: egress.for_operator(), ..StorageSettings::default() };
        settings.deadlines.exchange = DEADLINE;
        let client = GuardedClient::new(&settings, Arc::new(SystemResolver::new()))?;
        let headers = headers.iter().map(|(name, value)| header(name, value)).collect::<Result<_, _>>()?;
        Ok(Self { client, url: url.into(), headers })
    }

    /// Posts `body`. The body of the response is discarded.
    ///
    /// # Errors
    /// [`ExportError::Status`], [`ExportError::Unreachable`] and [`ExportError::Proxy`].
    pub async fn post(&self, content_type: &'static str, body: Bytes) -> Result<(), ExportError> {
        let url = Arc::clone(&self.url);
        let request = Request::post(&*url).header(CONTENT_TYPE, content_type).body(body);
        let Ok(mut request) = request else {
            return Err(ExportError::Unreachable { url, reason: CheckReason::Unexpected });
        };
        request.headers_mut().extend(self.headers.iter().cloned());
        let response = self.client.send(request).await.map_err(|reason| {
            match self.client.proxy().filter(|_| reason.is_of_proxy()) {
                Some(proxy) => ExportError::Proxy { url: Arc::clone(&url), proxy: proxy.url().to_string(), reason },
                None => ExportError::Unreachable { url: Arc::clone(&url), reason },
            }
        })?;
        match response.status {
            status if status.is_success() => Ok(()),
            status => Err(ExportError::Status { url, status }),
        }
    }
}

fn header(name: &str, value: &SecretString) -> Result<(HeaderName, HeaderValue), ExportError> {
    let invalid = || ExportError::Header(name.to_owned());
    let found: HeaderName = name.parse().map_err(|_| invalid())?;
    let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| invalid())?; // sent to the server
    value.set_sensitive(true);
    Ok((found, value))
}
