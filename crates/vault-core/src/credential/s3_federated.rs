//! Keyless credentials for buckets of S3-compatible storage.

use super::reader::FieldReader;
use super::s3::refuse_bucket_in_endpoint;
use super::table::credential_table;
use super::{Buckets, S3Location};
use crate::federation::{FederationAudience, is_aws_region};
use crate::field::FieldCode;
use url::{Host, Url};

credential_table! {
    /// Buckets of S3-compatible storage, accessed with a role that trusts the federation issuer.
    S3Federated {
        /// ARN of the role to assume.
        role_arn: required Location RoleArn -> String,
        /// The bucket, or a list of buckets.
        bucket: required Location Bucket -> Buckets,
        /// Region of the storage.
        region: optional Location Region -> String,
        /// URL of the storage, if it is not Amazon's. `https` only.
        endpoint: optional Location Endpoint -> String,
        /// URL that issues keys for a role's session, if it is neither Amazon's service nor the endpoint. `https` only,
        /// without a path.
        sts_endpoint: optional Location Endpoint -> String,
        /// Prefix of the names of all affected objects.
        key_prefix: optional Location KeyPrefix -> String,
        /// Whether the bucket is part of the path instead of the host.
        path_style_access: optional Location Flag -> bool,
        /// Key of AWS KMS that encrypts new objects: an ARN, an ID or an alias.
        sse_kms_key_id: optional Location KmsKeyId -> String,
    }
}

const NOT_HTTPS: &str = "must be https, because the server sends a token to it";
const NOT_AN_ORIGIN: &str = "must be https without a path, because the server sends a token to it";
const NO_REGION: &str = "must be a Region, such as eu-central-1";
const TRAILING_DOT: &str = "must not contain a host with a trailing dot";
const FOREIGN: &str = "must be an S3 endpoint of AWS if AWS issues the session, such as \
                       https://s3.eu-central-1.amazonaws.com; omit it to use the one of the region";

impl S3Federated {
    /// Returns the location of the buckets.
    pub fn location(&self) -> S3Location<'_> {
        S3Location {
            bucket: &self.bucket,
            region: self.region.as_deref(),
            endpoint: self.endpoint.as_deref(),
            sts_endpoint: self.sts_endpoint.as_deref(),
            key_prefix: self.key_prefix.as_deref(),
            path_style_access: self.path_style_access,
            role_arn: Some(&self.role_arn),
            sse_kms_key_id: self.sse_kms_key_id.as_deref(),
        }
    }

    /// Returns the address that receives the token, with the audience that follows from it. Returns `None` if a token must
    /// not be sent there: without `https`, or if AWS would issue a session that is then used at a foreign host.
    pub fn recipient(&self) -> Option<(String, FederationAudience)> {
        let address = self.location().sts_address();
        let audience = FederationAudience::of_sts(&address)?;
        let is_permitted = self.endpoint.as_deref().is_none_or(|endpoint| {
            let Ok(url) = Url::parse(endpoint) else { return false };
            url.scheme() == "https" && (!audience.is_aws() || is_s3_of_aws(&url))
        });
        is_permitted.then_some((address, audience))
    }

    /// Reports an endpoint that contains the bucket, or to which no token or session may be sent.
    pub(super) fn check_together(&self, source: &mut FieldReader) {
        refuse_bucket_in_endpoint(&self.location(), source);
        for (name, url) in [("endpoint", &self.endpoint), ("sts_endpoint", &self.sts_endpoint)] {
            let Some(url) = url.as_deref().and_then(|url| Url::parse(url).ok()) else { continue };
            if url.scheme() != "https" {
                source.refuse(name, FieldCode::NotAllowed, NOT_HTTPS);
            }
            if url.host_str().is_some_and(|host| host.ends_with('.')) {
                source.refuse(name, FieldCode::NotAllowed, TRAILING_DOT);
            }
        }
        match FederationAudience::of_sts(&self.location().sts_address()) {
            Some(audience) if audience.is_aws() && self.recipient().is_none() => {
                source.refuse("endpoint", FieldCode::NotAllowed, FOREIGN);
            }
            Some(_) => {}
            None if self.sts_endpoint.is_some() => source.refuse("sts_endpoint", FieldCode::NotAllowed, NOT_AN_ORIGIN),
            None if self.endpoint.is_some() => source.refuse("endpoint", FieldCode::NotAllowed, NOT_AN_ORIGIN),
            None => source.refuse("region", FieldCode::Malformed, NO_REGION),
        }
    }
}

/// Returns whether `url` is an S3 endpoint of AWS. Compares whole hosts, because a customer controls each host of a
/// bucket, and many other hosts below the same domains.
fn is_s3_of_aws(url: &Url) -> bool {
    let (Some(Host::Domain(host)), None) = (url.host(), url.port()) else { return false };
    matches!(host, "s3.amazonaws.com" | "s3-accelerate.amazonaws.com")
        || ["amazonaws.com", "amazonaws.com.cn"].into_iter().any(|domain| {
            let service = host.strip_suffix(domain).and_then(|service| service.strip_suffix('.'));
            let labels: Vec<&str> = service.map(|service| service.split('.').collect()).unwrap_or_default();
            match *labels.as_slice() {
                ["s3" | "s3-fips", region] | ["s3" | "s3-fips", "dualstack", region] => is_aws_region(region),
                _ => false,
            }
        })
}
