//! Credentials for buckets of S3-compatible storage.

use super::information::Fact;
use super::reader::FieldReader;
use super::table::credential_table;
use super::{Buckets, S3Location, SecretText};
use crate::field::FieldCode;
use std::net::IpAddr;
use url::{Host, Url};

credential_table! {
    /// Buckets of S3-compatible storage, accessed with an access key.
    S3 {
        /// ID of the access key.
        access_key_id: required Id AccessKeyId -> SecretText,
        /// Secret of the access key.
        secret_access_key: required Secret Secret -> SecretText,
        /// The bucket, or a list of buckets.
        bucket: required Location Bucket -> Buckets,
        /// Region of the storage.
        region: optional Location Region -> String,
        /// URL of the storage, if it is not Amazon's.
        endpoint: optional Location Endpoint -> String,
        /// URL that issues keys for a role's session, if it is neither Amazon's service nor the endpoint.
        sts_endpoint: optional Location Endpoint -> String,
        /// Prefix of the names of all affected objects.
        key_prefix: optional Location KeyPrefix -> String,
        /// Whether the bucket is part of the path instead of the host.
        path_style_access: optional Location Flag -> bool,
        /// ARN of the role to assume.
        role_arn: optional Location RoleArn -> String,
        /// Key of AWS KMS that encrypts new objects: an ARN, an ID or an alias.
        sse_kms_key_id: optional Location KmsKeyId -> String,
        /// Session token of temporary keys.
        session_token: optional Secret Secret -> SecretText,
        /// External ID that the role requires.
        external_id: optional Secret Secret -> SecretText,
    }
}

/// Position of the bucket in the URL of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// `https://bucket.store/`
    Host,
    /// `https://store/bucket/`
    Path,
}

impl Addressing {
    /// Returns the addressing of checks and of short-lived credentials with the same fields. The bucket is in the host,
    /// unless `path_style_access` is true, the endpoint is an IP address, or the bucket's name is not a single host
    /// label. A name with a dot would not match the certificate of the storage. All buckets
    /// of a credential are addressed alike.
    pub fn of(buckets: &Buckets, endpoint: Option<&str>, path_style_access: Option<bool>) -> Self {
        let is_address = endpoint
            .and_then(|endpoint| Url::parse(endpoint).ok())
            .is_some_and(|url| !matches!(url.host(), Some(Host::Domain(name)) if name.parse::<IpAddr>().is_err()));
        let by_path = path_style_access == Some(true) || is_address || !buckets.iter().all(is_host_label);
        if by_path { Self::Path } else { Self::Host }
    }
}

fn is_host_label(bucket: &str) -> bool {
    (3..=63).contains(&bucket.len())
        && bucket.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !bucket.starts_with('-')
        && !bucket.ends_with('-')
}

impl S3 {
    /// Returns the location of the buckets.
    pub fn location(&self) -> S3Location<'_> {
        S3Location {
            bucket: &self.bucket,
            region: self.region.as_deref(),
            endpoint: self.endpoint.as_deref(),
            sts_endpoint: self.sts_endpoint.as_deref(),
            key_prefix: self.key_prefix.as_deref(),
            path_style_access: self.path_style_access,
            role_arn: self.role_arn.as_deref(),
            sse_kms_key_id: self.sse_kms_key_id.as_deref(),
        }
    }

    /// Returns whether a session can be requested. Amazon issues sessions only for roles. Services of other providers,
    /// such as MinIO, do not require one.
    pub fn allows_session(&self) -> bool {
        self.role_arn.is_some() || self.endpoint.is_some() || self.sts_endpoint.is_some()
    }

    /// Reports an endpoint that contains the bucket.
    pub(super) fn check_together(&self, source: &mut FieldReader) {
        refuse_bucket_in_endpoint(&self.location(), source);
    }

    pub(super) fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}

/// Reports an endpoint that contains the bucket.
pub(super) fn refuse_bucket_in_endpoint(location: &S3Location<'_>, source: &mut FieldReader) {
    if let Some(endpoint) = location.endpoint_without_bucket() {
        let detail = format!("must not contain the bucket, which tools add to the endpoint: use {endpoint}");
        source.refuse("endpoint", FieldCode::NotAllowed, detail);
    }
}
