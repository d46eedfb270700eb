//! Buckets of S3-style stores.

use super::SecretText;
use super::information::Fact;
use super::table::credential_table;
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
        /// The beginning of the names of all objects concerned.
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

    pub(super) fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}
