//! Operations on a bucket with an access token.
//!
//! <https://cloud.google.com/storage/docs/json_api/v1>

use crate::guard::{Answer, GuardedClient};
use crate::probe::{CONTENT, Found, Objects, Trial};
use crate::text::{encode_pairs, encode_value};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::{Method, Request, StatusCode, header};
use serde::Deserialize;
use vault_core::check::{CheckReason, StorageOperation};
use vault_core::credential::SecretText;
use zeroize::Zeroizing;

/// Requests the content of an object instead of its metadata.
const MEDIA: &str = "?alt=media";

pub(super) struct Bucket<'a> {
    pub(super) client: &'a GuardedClient,
    pub(super) token: &'a SecretText,
    /// Address of the service, without a trailing slash.
    pub(super) address: &'a str,
    pub(super) name: &'a str,
    /// Prefix of the names of all affected objects.
    pub(super) prefix: &'a str,
}

#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    name: String,
    /// Decimal number.
    size: Option<String>,
}

#[derive(Deserialize)]
struct Granted {
    #[serde(default)]
    permissions: Vec<String>,
}

#[derive(Deserialize)]
struct Refused {
    error: Detail,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(default)]
    errors: Vec<Cause>,
}

#[derive(Deserialize)]
struct Cause {
    #[serde(default)]
    reason: String,
}

impl Bucket<'_> {
    async fn ask(&self, method: Method, path: &str, body: &'static [u8]) -> Result<Answer, CheckReason> {
        let bearer = Zeroizing::new(["Bearer ", self.token.expose()].concat()); // sent to the service that issued it
        let mut request = Request::builder()
            .method(&method)
            .uri([self.address, path].concat())
            .header(header::AUTHORIZATION, &**bearer);
        if method == Method::POST {
            request = request.header(header::CONTENT_TYPE, "text/plain");
        } else if path.ends_with(MEDIA) {
            request = request.header(header::RANGE, "bytes=0-0");
        }
        let request = request.body(Bytes::from_static(body)).map_err(|_| CheckReason::Unexpected)?;
        self.client.send(request).await
    }

    /// Returns the path of the bucket, or of an object in it.
    fn path(&self, object: Option<&str>) -> String {
        let bucket = encode_value(self.name);
        match object {
            None => format!("/storage/v1/b/{bucket}"),
            Some(name) => format!("/storage/v1/b/{bucket}/o/{}", encode_value(name)),
        }
    }
}

fn why(answer: &Answer, missing: CheckReason) -> CheckReason {
    let refused: Option<Refused> = answer.json();
    let cause = refused.as_ref().and_then(|refused| refused.error.errors.first()).map(|cause| &*cause.reason);
    match (answer.status.as_u16(), cause.unwrap_or_default()) {
        (403, "rateLimitExceeded" | "userRateLimitExceeded" | "quotaExceeded") => CheckReason::StoreError,
        (401, _) => CheckReason::UnknownKey,
        (404, _) => missing,
        _ => answer.plain_reason(),
    }
}

#[async_trait]
impl Objects for Bucket<'_> {
    async fn list(&self) -> Result<Option<Found>, CheckReason> {
        let query = encode_pairs(&[("maxResults", "20"), ("prefix", self.prefix()), ("fields", "items(name,size)")]);
        let answer = self.ask(Method::GET, &format!("{}/o?{query}", self.path(None)), b"").await?;
        if answer.status != StatusCode::OK {
            return Err(why(&answer, CheckReason::BucketMissing));
        }
        let listing: Listing = answer.json().ok_or(CheckReason::Unexpected)?;
        Ok(Found::best(listing.items.into_iter().map(|item| {
            let size = item.size.and_then(|size| size.parse().ok()).unwrap_or_default();
            Found { name: item.name, size }
        })))
    }

    async fn read(&self, object: &Found) -> Result<(), CheckReason> {
        let path = [&self.path(Some(&object.name)), MEDIA].concat();
        let answer = self.ask(Method::GET, &path, b"").await?;
        // An empty object has no first byte.
        let was_read = answer.status.is_success() || answer.status == StatusCode::RANGE_NOT_SATISFIABLE;
        if was_read { Ok(()) } else { Err(why(&answer, CheckReason::ObjectMissing)) }
    }

    async fn write(&self, name: &str) -> Result<(), CheckReason> {
        let query = encode_pairs(&[("uploadType", "media"), ("ifGenerationMatch", "0"), ("name", name)]);
        let path = format!("/upload{}/o?{query}", self.path(None));
        let answer = self.ask(Method::POST, &path, CONTENT).await?;
        if answer.status.is_success() { Ok(()) } else { Err(why(&answer, CheckReason::BucketMissing)) }
    }

    async fn remove(&self, name: &str) -> Result<(), CheckReason> {
        let answer = self.ask(Method::DELETE, &self.path(Some(name)), b"").await?;
        if answer.status.is_success() { Ok(()) } else { Err(why(&answer, CheckReason::ObjectMissing)) }
    }

    /// Returns whether the token has permissions on the bucket itself, or may write although only reading was
    /// requested. The service reports permissions without using them.
    async fn opens_more(&self, trial: &Trial) -> Option<bool> {
        let mut rights = vec!["storage.buckets.delete", "storage.buckets.setIamPolicy", "storage.buckets.update"];
        if !trial.operations.contains(&StorageOperation::Write) {
            rights.extend(["storage.objects.create", "storage.objects.delete"]);
        }
        let pairs: Vec<_> = rights.iter().map(|right| ("permissions", *right)).collect();
        let path = format!("{}/iam/testPermissions?{}", self.path(None), encode_pairs(&pairs));
        let answer = self.ask(Method::GET, &path, b"").await.ok()?;
        let granted: Granted = answer.json().filter(|_| answer.status == StatusCode::OK)?;
        Some(!granted.permissions.is_empty())
    }

    fn prefix(&self) -> &str {
        self.prefix
    }
}
