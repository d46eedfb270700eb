//! A bucket, as keys open it.

use super::place::region_of;
use super::{reason, signable};
use crate::guard::{Answer, GuardedClient};
use crate::probe::{CONTENT, Found, Objects, Trial};
use crate::text::{address, encode_name, encode_pairs};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::{Method, Request, StatusCode, header};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequestBody;
use serde::Deserialize;
use vault_core::check::{CheckReason, StorageOperation};
use vault_core::credential::S3;
use vault_core::time::Timestamp;

/// How many objects are looked at for one to read.
const GLANCE: &str = "20";
/// How far clocks may differ before Amazon refuses, in seconds.
const MAX_SKEW: u64 = 15 * 60;

/// A bucket.
pub(super) struct Bucket<'a> {
    pub(super) client: &'a GuardedClient,
    pub(super) keys: AwsCredential,
    /// With a last slash.
    pub(super) address: String,
    pub(super) data: &'a S3,
    pub(super) now: Timestamp,
}

#[derive(Deserialize)]
enum Listing {
    #[serde(rename_all = "PascalCase")]
    ListBucketResult {
        #[serde(default)]
        contents: Vec<Entry>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    key: String,
    size: u64,
}

impl<'a> Bucket<'a> {
    /// The same bucket at another address.
    pub(super) fn at(&self, address: String) -> Bucket<'a> {
        let AwsCredential { key_id, secret_key, token } = &self.keys;
        let keys = AwsCredential { key_id: key_id.clone(), secret_key: secret_key.clone(), token: token.clone() };
        Bucket { client: self.client, keys, address, data: self.data, now: self.now }
    }

    async fn ask(&self, method: Method, rest: &str, body: &'static [u8]) -> Result<Answer, CheckReason> {
        let address = address(&[&self.address, rest].concat()).ok_or(CheckReason::Unexpected)?;
        let is_reading = method == Method::GET && !rest.starts_with('?');
        let mut request = Request::builder().method(method).uri(address);
        if is_reading {
            request = request.header(header::RANGE, "bytes=0-0");
        }
        let body = HttpRequestBody::from(Bytes::from_static(body));
        let mut request = request.body(body).map_err(|_| CheckReason::Unexpected)?;
        signable(&self.keys.key_id, self.keys.token.as_deref(), region_of(self.data))?;
        AwsAuthorizer::new(&self.keys, "s3", region_of(self.data))
            .try_authorize(&mut request, None)
            .map_err(|_| CheckReason::Unexpected)?;
        let request = request.map(|body| body.as_bytes().cloned().unwrap_or_default());
        self.client.send(request).await
    }

    async fn list_under(&self, prefix: &str) -> Result<Option<Found>, CheckReason> {
        let query = encode_pairs(&[("list-type", "2"), ("max-keys", GLANCE), ("prefix", prefix)]);
        let answer = self.ask(Method::GET, &format!("?{query}"), b"").await?;
        if answer.status != StatusCode::OK {
            return Err(self.why(&answer));
        }
        let Listing::ListBucketResult { contents } = answer.xml().ok_or(CheckReason::Unexpected)?;
        Ok(Found::best(contents.into_iter().map(|Entry { key, size }| Found { name: key, size })))
    }

    fn why(&self, answer: &Answer) -> CheckReason {
        match reason::of(answer) {
            // Some stores say no more than this of a clock that is wrong.
            CheckReason::Denied if answer.skew(self.now.as_seconds()).is_some_and(|skew| skew > MAX_SKEW) => {
                CheckReason::ClockSkew
            }
            reason => reason,
        }
    }

    /// Whether it may write an object, told by a part of an upload that was never begun: whoever may write hears that
    /// there is no such upload, and nothing is written.
    async fn may_write(&self, name: &str) -> Option<bool> {
        let name = [self.prefix(), name].concat();
        let path = format!("{}?partNumber=1&uploadId=orgvault-check", encode_name(&name)?);
        let answer = self.ask(Method::PUT, &path, b"").await.ok()?;
        if answer.status.is_success() {
            // A store that knows no uploads in parts has written it.
            let _ = self.remove(&name).await;
            return Some(true);
        }
        if answer.stated().code == "NoSuchUpload" { Some(true) } else { allowed(Err(self.why(&answer))) }
    }

    async fn on_object(&self, method: Method, name: &str, body: &'static [u8]) -> Result<(), CheckReason> {
        let path = encode_name(name).ok_or(CheckReason::NothingToTry)?.to_string();
        let answer = self.ask(method, &path, body).await?;
        // There is no first byte in an empty object.
        let was_done = answer.status.is_success() || answer.status == StatusCode::RANGE_NOT_SATISFIABLE;
        if was_done { Ok(()) } else { Err(self.why(&answer)) }
    }
}

/// What an answer says of a right; other failures say nothing of it.
const fn allowed(result: Result<(), CheckReason>) -> Option<bool> {
    match result {
        Ok(()) => Some(true),
        Err(CheckReason::Denied) => Some(false),
        Err(_) => None,
    }
}

#[async_trait]
impl Objects for Bucket<'_> {
    async fn list(&self) -> Result<Option<Found>, CheckReason> {
        self.list_under(self.prefix()).await
    }

    async fn read(&self, object: &Found) -> Result<(), CheckReason> {
        self.on_object(Method::GET, &object.name, b"").await
    }

    async fn write(&self, name: &str) -> Result<(), CheckReason> {
        self.on_object(Method::PUT, name, CONTENT).await
    }

    async fn remove(&self, name: &str) -> Result<(), CheckReason> {
        self.on_object(Method::DELETE, name, b"").await
    }

    /// Whether it lists what does not begin with the prefix, or writes where that was not asked for.
    async fn opens_more(&self, trial: &Trial) -> Option<bool> {
        let listing = if self.prefix().is_empty() { None } else { allowed(self.list_under("").await.map(|_| ())) };
        let writing =
            if trial.operations.contains(&StorageOperation::Write) { None } else { self.may_write(&trial.name).await };
        [listing, writing].into_iter().flatten().reduce(|one, other| one || other)
    }

    fn prefix(&self) -> &str {
        self.data.key_prefix.as_deref().unwrap_or_default()
    }
}
