//! Buckets of S3-style stores.

use super::SecretText;
use super::information::Fact;
use super::reader::FieldReader;
use super::table::credential_table;
use crate::field::FieldCode;
use std::net::IpAddr;
use url::{Host, Url};

credential_table! {
    /// A bucket of an S3-style store, opened by an access key.
    S3 {
        /// The access key's id.
        access_key_id: required Id AccessKeyId -> SecretText,
        /// The access key's secret.
        secret_access_key: required Secret Secret -> SecretText,
        /// The bucket.
        bucket: required Location Bucket -> String,
        /// The store's region.
        region: optional Location Region -> String,
        /// The store's address, where it is not Amazon's.
        endpoint: optional Location Endpoint -> String,
        /// Where keys of a role's session are issued, where that is neither Amazon's service nor the endpoint.
        sts_endpoint: optional Location Endpoint -> String,
        /// Prefix of the names of all affected objects.
        key_prefix: optional Location KeyPrefix -> String,
        /// Whether the bucket is part of the path instead of the host.
        path_style_access: optional Location Flag -> bool,
        /// ARN of the role to assume.
        role_arn: optional Location RoleArn -> String,
        /// The key of AWS KMS that new objects are encrypted under: an ARN, an id or an alias.
        sse_kms_key_id: optional Location KmsKeyId -> String,
        /// The session token that belongs to temporary keys.
        session_token: optional Secret Secret -> SecretText,
        /// The external id that the role asks for.
        external_id: optional Secret Secret -> SecretText,
    }
}

/// Buckets whose names are also common first labels of a store's own host, as `minio.example.com`.
const SERVICE_LABELS: [&str; 6] = ["s3", "minio", "storage", "objects", "ceph", "garage"];

/// Where in the URL of an object its bucket appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// `https://bucket.store/`
    Host,
    /// `https://store/bucket/`
    Path,
}

impl Addressing {
    /// The addressing that checks use, and short-lived credentials with the same fields: in the host, unless
    /// `path_style_access` is true, the endpoint is an IP address, or the bucket's name is no label of a host. A
    /// name with a dot would not match the certificate of the store.
    pub fn of(bucket: &str, endpoint: Option<&str>, path_style_access: Option<bool>) -> Self {
        let is_address = endpoint
            .and_then(|endpoint| Url::parse(endpoint).ok())
            .is_some_and(|url| !matches!(url.host(), Some(Host::Domain(name)) if name.parse::<IpAddr>().is_err()));
        let by_path = path_style_access == Some(true) || is_address || !is_host_label(bucket);
        if by_path { Self::Path } else { Self::Host }
    }
}

/// What follows the bucket in a host such as `bucket.store.example`. A host with two labels, such as `bucket.lan`, is
/// that of a store.
fn store_of_host(url: &Url, bucket: &str) -> Option<String> {
    let Some(Host::Domain(host)) = url.host() else { return None };
    let store = host.strip_prefix(bucket)?.strip_prefix('.')?;
    (store.contains('.') || store == "localhost").then(|| store.to_owned())
}

fn is_host_label(bucket: &str) -> bool {
    (3..=63).contains(&bucket.len())
        && bucket.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !bucket.starts_with('-')
        && !bucket.ends_with('-')
}

impl S3 {
    /// Where in the URL of an object the bucket appears.
    pub fn addressing(&self) -> Addressing {
        Addressing::of(&self.bucket, self.endpoint.as_deref(), self.path_style_access)
    }

    /// Whether a session can be asked for. Amazon issues one for a role only; others' services name none, as MinIO's.
    pub fn allows_session(&self) -> bool {
        self.role_arn.is_some() || self.endpoint.is_some() || self.sts_endpoint.is_some()
    }

    /// The endpoint without the bucket, if it contains the bucket: in its host, as `https://bucket.store`, or as a
    /// segment of its path. Tools add the bucket to the endpoint, so objects would be stored in a folder of the
    /// bucket's name.
    pub fn endpoint_without_bucket(&self) -> Option<String> {
        let mut url = Url::parse(self.endpoint.as_deref()?).ok()?;
        let bucket = self.bucket.to_ascii_lowercase();
        if SERVICE_LABELS.contains(&&*bucket) {
            return None;
        }
        if let Some(store) = store_of_host(&url, &bucket) {
            url.set_host(Some(&store)).ok()?;
        } else {
            let segments: Vec<&str> = url.path().split('/').collect();
            let at = segments.iter().position(|segment| *segment == self.bucket)?;
            let rest = segments.get(..at)?.join("/");
            url.set_path(&rest);
        }
        Some(url.as_str().trim_end_matches('/').to_owned())
    }

    /// Reports an endpoint that contains the bucket.
    pub(super) fn check_together(&self, source: &mut FieldReader) {
        if let Some(endpoint) = self.endpoint_without_bucket() {
            let detail = format!("must not contain the bucket, which tools add to the endpoint: use {endpoint}");
            source.refuse("endpoint", FieldCode::NotAllowed, detail);
        }
    }

    pub(super) fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}
