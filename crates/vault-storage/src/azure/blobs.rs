//! Operations on a container.

use super::access::Access;
use super::reason;
use crate::guard::{Answer, GuardedClient};
use crate::probe::{CONTENT, Found, Objects, Trial};
use crate::text::{encode_name, encode_pairs};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::{Method, Request, StatusCode, header};
use object_store::azure::AzureAuthorizer;
use object_store::client::HttpRequestBody;
use serde::Deserialize;
use vault_core::check::CheckReason;
use vault_core::time::Timestamp;

/// A container, or an account if the credential does not contain one.
pub(super) struct Blobs<'a> {
    pub(super) client: &'a GuardedClient,
    pub(super) access: Access,
    /// Address of the account, without a trailing slash.
    pub(super) address: String,
    pub(super) place: Place<'a>,
    pub(super) now: Timestamp,
}

/// Location of the blobs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// Name of the account.
    pub(super) account: &'a str,
    pub(super) container: Option<&'a str>,
    /// Prefix of the names of all affected objects.
    pub(super) prefix: &'a str,
    /// `true` if the credential contains the key of the account.
    pub(super) has_account_key: bool,
}

/// A list of containers, or of the blobs in one.
#[derive(Deserialize)]
enum Listing {
    #[serde(rename_all = "PascalCase")]
    EnumerationResults {
        #[serde(default)]
        blobs: Entries,
    },
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Entries {
    blob: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    name: String,
    properties: Properties,
}

#[derive(Deserialize)]
struct Properties {
    #[serde(rename = "Content-Length")]
    content_length: u64,
}

impl Blobs<'_> {
    /// Sends a request for `path` of the account, which must start with a slash.
    async fn ask(&self, method: Method, path: &str, query: &str, body: &'static [u8]) -> Result<Answer, CheckReason> {
        let mut address = [&self.address, path].concat();
        let mut queries = vec![query];
        if let Access::Signature(signature) = &self.access {
            queries.push(signature.expose()); // the query authorizes the request
        }
        queries.retain(|query| !query.is_empty());
        if !queries.is_empty() {
            address = [&address, "?", &queries.join("&")].concat();
        }
        let address = crate::text::address(&address).ok_or(CheckReason::Unexpected)?;
        let mut request = Request::builder().method(&method).uri(address);
        if method == Method::PUT {
            request = request.header("x-ms-blob-type", "BlockBlob").header(header::CONTENT_LENGTH, body.len());
        } else if query.is_empty() && method == Method::GET {
            request = request.header(header::RANGE, "bytes=0-0");
        }
        let body = HttpRequestBody::from(Bytes::from_static(body));
        let mut request = request.body(body).map_err(|_| CheckReason::Unexpected)?;
        if let Access::Signed(credential) = &self.access {
            AzureAuthorizer::new(credential, self.place.account)
                .try_authorize(&mut request)
                .map_err(|_| CheckReason::Unexpected)?;
        }
        let request = request.map(|body| body.as_bytes().cloned().unwrap_or_default());
        self.client.send(request).await
    }

    fn why(&self, answer: &Answer) -> CheckReason {
        reason::of(answer, &self.access, self.now.as_seconds())
    }

    /// Lists the account's containers.
    async fn list_containers(&self) -> Result<(), CheckReason> {
        let answer = self.ask(Method::GET, "/", "comp=list&maxresults=1", b"").await?;
        match answer.status {
            StatusCode::OK => answer.xml::<Listing>().map(drop).ok_or(CheckReason::Unexpected),
            _ => Err(self.why(&answer)),
        }
    }

    async fn on_blob(&self, method: Method, name: &str, body: &'static [u8]) -> Result<Answer, CheckReason> {
        let container = self.place.container.ok_or(CheckReason::NothingToTry)?;
        let (container, name) = encode_name(container).zip(encode_name(name)).ok_or(CheckReason::NothingToTry)?;
        self.ask(method, &format!("/{container}/{name}"), "", body).await
    }

    fn evaluate(&self, answer: &Answer) -> Result<(), CheckReason> {
        if answer.status.is_success() { Ok(()) } else { Err(self.why(answer)) }
    }
}

#[async_trait]
impl Objects for Blobs<'_> {
    async fn list(&self) -> Result<Option<Found>, CheckReason> {
        let Some(container) = self.place.container else {
            return self.list_containers().await.map(|()| None);
        };
        let container = encode_name(container).ok_or(CheckReason::BucketMissing)?;
        let prefix = [("prefix", self.prefix())];
        let mut pairs = vec![("restype", "container"), ("comp", "list"), ("maxresults", "20")];
        pairs.extend(prefix.iter().filter(|(_, prefix)| !prefix.is_empty()));
        let answer = self.ask(Method::GET, &format!("/{container}"), &encode_pairs(&pairs), b"").await?;
        if answer.status != StatusCode::OK {
            return Err(match self.why(&answer) {
                CheckReason::ObjectMissing => CheckReason::BucketMissing,
                reason => reason,
            });
        }
        let Listing::EnumerationResults { blobs } = answer.xml().ok_or(CheckReason::Unexpected)?;
        let found = blobs.blob.into_iter().map(|blob| Found { name: blob.name, size: blob.properties.content_length });
        Ok(Found::best(found))
    }

    async fn read(&self, object: &Found) -> Result<(), CheckReason> {
        let answer = self.on_blob(Method::GET, &object.name, b"").await?;
        // An empty object has no first byte.
        if answer.status == StatusCode::RANGE_NOT_SATISFIABLE { Ok(()) } else { self.evaluate(&answer) }
    }

    async fn write(&self, name: &str) -> Result<(), CheckReason> {
        let answer = self.on_blob(Method::PUT, name, CONTENT).await?;
        self.evaluate(&answer)
    }

    async fn remove(&self, name: &str) -> Result<(), CheckReason> {
        let answer = self.on_blob(Method::DELETE, name, b"").await?;
        self.evaluate(&answer)
    }

    /// Returns whether the credential contains an account key, or can list the account's other containers.
    async fn opens_more(&self, _: &Trial) -> Option<bool> {
        if self.place.has_account_key {
            return Some(true);
        }
        self.place.container?;
        match self.list_containers().await {
            Ok(()) => Some(true),
            Err(CheckReason::Denied) => Some(false),
            Err(_) => None,
        }
    }

    fn prefix(&self) -> &str {
        self.place.prefix
    }
}
