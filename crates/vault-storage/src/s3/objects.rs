//! Operations on a bucket with access keys.

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
use std::sync::{Mutex, MutexGuard, PoisonError};
use vault_core::check::{CheckReason, StorageOperation};
use vault_core::credential::S3Location;
use vault_core::time::Timestamp;

/// Number of listed objects from which one is selected for reading.
const GLANCE: &str = "20";
/// Maximum clock skew that Amazon accepts, in seconds.
const MAX_SKEW: u64 = 15 * 60;

pub(super) struct Bucket<'a> {
    client: &'a GuardedClient,
    keys: &'a AwsCredential,
    /// Address with a trailing slash.
    address: String,
    location: S3Location<'a>,
    now: Timestamp,
    /// ID of a multipart upload that was started and may still exist.
    upload: Mutex<Option<String>>,
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
enum Begun {
    #[serde(rename_all = "PascalCase")]
    InitiateMultipartUploadResult { upload_id: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    key: String,
    size: u64,
}

impl<'a> Bucket<'a> {
    /// Returns the same bucket at another address.
    pub(super) fn at(&self, address: String) -> Bucket<'a> {
        Self::new(self.client, self.keys, address, self.location, self.now)
    }

    /// Creates access to a bucket of `location` at `address` with `keys`.
    pub(super) fn new(
        client: &'a GuardedClient,
        keys: &'a AwsCredential,
        address: String,
        location: S3Location<'a>,
        now: Timestamp,
    ) -> Self {
        Self { client, keys, address, location, now, upload: Mutex::new(None) }
    }

    async fn ask(&self, method: Method, rest: &str, body: impl Into<Bytes>) -> Result<Answer, CheckReason> {
        let address = address(&[&self.address, rest].concat()).ok_or(CheckReason::Unexpected)?;
        let is_reading = method == Method::GET && !rest.starts_with('?');
        let begins_upload = method == Method::POST && rest.ends_with("?uploads");
        let mut request = Request::builder().method(method).uri(address);
        if is_reading {
            request = request.header(header::RANGE, "bytes=0-0");
        }
        if let Some(key) = self.location.sse_kms_key_id.filter(|_| begins_upload) {
            request = request
                .header("x-amz-server-side-encryption", "aws:kms")
                .header("x-amz-server-side-encryption-aws-kms-key-id", key);
        }
        let body = HttpRequestBody::from(body.into());
        let mut request = request.body(body).map_err(|_| CheckReason::Unexpected)?;
        let region = self.location.signing_region();
        signable(&self.keys.key_id, self.keys.token.as_deref(), &region)?;
        AwsAuthorizer::new(self.keys, "s3", &region)
            .try_authorize(&mut request, None)
            .map_err(|_| CheckReason::Unexpected)?;
        let request = request.map(|body| body.as_bytes().cloned().unwrap_or_default());
        self.client.send(request).await
    }

    async fn list_under(&self, prefix: &str) -> Result<Option<Found>, CheckReason> {
        let query = encode_pairs(&[("list-type", "2"), ("max-keys", GLANCE), ("prefix", prefix)]);
        let answer = self.ask(Method::GET, &format!("?{query}"), Bytes::new()).await?;
        if answer.status != StatusCode::OK {
            return Err(self.why(&answer));
        }
        let Listing::ListBucketResult { contents } = answer.xml().ok_or(CheckReason::Unexpected)?;
        Ok(Found::best(contents.into_iter().map(|Entry { key, size }| Found { name: key, size })))
    }

    fn why(&self, answer: &Answer) -> CheckReason {
        match reason::of(answer) {
            // Some providers report a wrong clock only as a denied request.
            CheckReason::Denied if answer.skew(self.now.as_seconds()).is_some_and(|skew| skew > MAX_SKEW) => {
                CheckReason::ClockSkew
            }
            reason => reason,
        }
    }

    /// Returns whether the keys may write an object, without writing: with write permission, a part of a nonexistent
    /// upload fails because there is no such upload.
    async fn may_write(&self, name: &str) -> Option<bool> {
        let name = [self.prefix(), name].concat();
        let path = format!("{}?partNumber=1&uploadId=orgvault-check", encode_name(&name)?);
        let answer = self.ask(Method::PUT, &path, Bytes::new()).await.ok()?;
        if answer.status.is_success() {
            // A provider without multipart uploads has written the object.
            let _ = self.remove(&name).await;
            return Some(true);
        }
        if answer.stated().code == "NoSuchUpload" { Some(true) } else { allowed(Err(self.why(&answer))) }
    }

    /// Writes an object as a multipart upload, as tools do for large objects.
    async fn upload(&self, name: &str) -> Result<(), CheckReason> {
        let path = encode_name(name).ok_or(CheckReason::NothingToTry)?.to_string();
        let answer = self.ask(Method::POST, &format!("{path}?uploads"), Bytes::new()).await?;
        if !answer.status.is_success() {
            return Err(self.why(&answer));
        }
        let Begun::InitiateMultipartUploadResult { upload_id } = answer.xml().ok_or(CheckReason::Unexpected)?;
        lock(&self.upload).replace(upload_id.clone());
        let of_upload = encode_pairs(&[("uploadId", &upload_id)]);
        let part = format!("{path}?partNumber=1&{of_upload}");
        let answer = self.ask(Method::PUT, &part, Bytes::from_static(CONTENT)).await?;
        if !answer.status.is_success() {
            return Err(self.why(&answer));
        }
        let tag = answer.header("etag").ok_or(CheckReason::Unexpected)?;
        let parts = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
            quick_xml::escape::escape(tag)
        );
        let answer = self.ask(Method::POST, &format!("{path}?{of_upload}"), parts).await?;
        // A provider may start a successful response before the outcome is known, and end it with an error document.
        if !answer.status.is_success() || !answer.stated().code.is_empty() {
            return Err(self.why(&answer));
        }
        lock(&self.upload).take();
        Ok(())
    }

    /// Removes the parts of an upload that was started and not completed.
    async fn abandon_upload(&self, name: &str) {
        let Some(upload) = lock(&self.upload).take() else { return };
        if let Some(path) = encode_name(name) {
            let query = encode_pairs(&[("uploadId", &upload)]);
            let _ = self.ask(Method::DELETE, &format!("{path}?{query}"), Bytes::new()).await;
        }
    }

    async fn on_object(&self, method: Method, name: &str) -> Result<(), CheckReason> {
        let path = encode_name(name).ok_or(CheckReason::NothingToTry)?.to_string();
        let answer = self.ask(method, &path, Bytes::new()).await?;
        // An empty object has no first byte.
        let was_done = answer.status.is_success() || answer.status == StatusCode::RANGE_NOT_SATISFIABLE;
        if was_done { Ok(()) } else { Err(self.why(&answer)) }
    }
}

fn lock(upload: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    upload.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a result shows or denies a permission. Other failures are inconclusive.
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
        self.on_object(Method::GET, &object.name).await
    }

    async fn write(&self, name: &str) -> Result<(), CheckReason> {
        let written = self.upload(name).await;
        if written.is_err() {
            self.abandon_upload(name).await;
        }
        written
    }

    async fn remove(&self, name: &str) -> Result<(), CheckReason> {
        // An interrupted upload has left its parts.
        self.abandon_upload(name).await;
        self.on_object(Method::DELETE, name).await
    }

    /// Returns whether the keys may list outside the prefix, or write although this was not requested.
    async fn opens_more(&self, trial: &Trial) -> Option<bool> {
        let listing = if self.prefix().is_empty() { None } else { allowed(self.list_under("").await.map(|_| ())) };
        let writing =
            if trial.operations.contains(&StorageOperation::Write) { None } else { self.may_write(&trial.name).await };
        [listing, writing].into_iter().flatten().reduce(|one, other| one || other)
    }

    fn prefix(&self) -> &str {
        self.location.key_prefix.unwrap_or_default()
    }
}
