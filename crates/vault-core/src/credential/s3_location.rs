//! Location of S3-compatible storage, which credentials with and without a saved secret share.

use super::aws::{AwsPartition, service_of_amazon};
use super::{Addressing, Buckets};
use std::borrow::Cow;
use url::{Host, Url};

/// Region that tools use by default.
const ASSUMED_REGION: &str = "us-east-1";

/// Bucket names that are also common first labels of a storage host, such as `minio.example.com`.
const SERVICE_LABELS: [&str; 6] = ["s3", "minio", "storage", "objects", "ceph", "garage"];

/// Location of the buckets of a credential, and of the service that issues sessions for them.
#[derive(Clone, Copy, Debug)]
pub struct S3Location<'a> {
    /// The bucket, or a list of buckets.
    pub bucket: &'a Buckets,
    /// Saved Region.
    pub region: Option<&'a str>,
    /// URL of the storage, if it is not Amazon's.
    pub endpoint: Option<&'a str>,
    /// URL that issues keys for a role's session, if it is neither Amazon's service nor the endpoint.
    pub sts_endpoint: Option<&'a str>,
    /// Prefix of the names of all affected objects.
    pub key_prefix: Option<&'a str>,
    /// Whether the bucket is part of the path instead of the host.
    pub path_style_access: Option<bool>,
    /// ARN of the role to assume.
    pub role_arn: Option<&'a str>,
    /// Key of AWS KMS that encrypts new objects.
    pub sse_kms_key_id: Option<&'a str>,
}

impl<'a> S3Location<'a> {
    /// Returns the position of the bucket in the URL of an object.
    pub fn addressing(&self) -> Addressing {
        Addressing::of(self.bucket, self.endpoint, self.path_style_access)
    }

    /// Returns the endpoint without the bucket if it contains the bucket: in its host, as in `https://bucket.store`, or
    /// as a segment of its path. Tools add the bucket to the endpoint, so objects would be stored in a folder with the
    /// name of the bucket. With `path_style_access`, the host is the storage's own.
    pub fn endpoint_without_bucket(&self) -> Option<String> {
        let endpoint = Url::parse(self.endpoint?).ok()?;
        let is_in_host = self.path_style_access != Some(true);
        self.bucket.iter().find_map(|bucket| without_bucket(endpoint.clone(), bucket, is_in_host))
    }

    /// Returns the Region for signing: the saved one, that of an AWS endpoint, or the default.
    pub fn signing_region(&self) -> Cow<'a, str> {
        match self.region {
            Some(region) => region.into(),
            None => self.region_of_endpoint().map_or(ASSUMED_REGION.into(), Cow::from),
        }
    }

    /// Returns the Region of an endpoint such as `https://s3.eu-west-1.amazonaws.com`: the label that ends with a digit.
    fn region_of_endpoint(&self) -> Option<String> {
        let url = Url::parse(self.endpoint?).ok()?;
        let service = service_of_amazon(url.host_str()?)?;
        let is_region = |label: &&str| label.contains('-') && label.ends_with(|c: char| c.is_ascii_digit());
        let labels = service.split('.').map(|label| label.strip_prefix("s3-").unwrap_or(label));
        labels.rev().find(is_region).map(str::to_owned)
    }

    /// Returns whether the storage is Amazon S3.
    pub fn is_amazon(&self) -> bool {
        let Some(endpoint) = self.endpoint else { return true };
        let url = Url::parse(endpoint).ok();
        url.as_ref().and_then(Url::host_str).is_some_and(|host| service_of_amazon(host).is_some())
    }

    /// Returns whether `bucket` is a directory bucket of S3 Express, or an access point of one. Tools request it in its
    /// zone, with keys of `CreateSession`.
    pub fn is_directory(&self, bucket: &str) -> bool {
        self.is_amazon() && ["--x-s3", "--xa-s3"].iter().any(|end| bucket.ends_with(end))
    }

    /// Returns the address of the security token service: the saved one, that of AWS in the Region, or the storage
    /// itself.
    pub fn sts_address(&self) -> String {
        match (self.sts_endpoint, self.endpoint) {
            (Some(endpoint), _) => endpoint.to_owned(),
            (None, Some(endpoint)) if !self.is_amazon() => endpoint.to_owned(),
            _ => {
                let region = self.signing_region();
                format!("https://sts.{region}.{}", AwsPartition::of(&region).domain)
            }
        }
    }
}

/// Returns the part after the bucket in a host such as `bucket.store.example`. A host with two labels, such as
/// `bucket.lan`, is that of a storage. In `bucket.vpce-1a2b3c4d.s3.us-east-1.vpce.amazonaws.com`, the first label is
/// Amazon's (Amazon S3 User Guide, "AWS PrivateLink for Amazon S3").
fn store_of_host(url: &Url, bucket: &str) -> Option<String> {
    let Some(Host::Domain(host)) = url.host() else { return None };
    let store = host.strip_prefix(bucket)?.strip_prefix('.')?;
    let is_private_link = store.starts_with("vpce-") && service_of_amazon(host).is_some();
    ((store.contains('.') && !is_private_link) || store == "localhost").then(|| store.to_owned())
}

/// The endpoint without `bucket`, if it contains it.
fn without_bucket(mut endpoint: Url, bucket: &str, is_in_host: bool) -> Option<String> {
    let lower = bucket.to_ascii_lowercase();
    if SERVICE_LABELS.contains(&&*lower) {
        return None;
    }
    if let Some(store) = store_of_host(&endpoint, &lower).filter(|_| is_in_host) {
        endpoint.set_host(Some(&store)).ok()?;
    } else {
        let segments: Vec<&str> = endpoint.path().split('/').collect();
        let at = segments.iter().position(|segment| *segment == bucket)?;
        let rest = segments.get(..at)?.join("/");
        endpoint.set_path(&rest);
    }
    Some(endpoint.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::{CredentialData, CredentialType, S3};
    use serde_json::json;

    fn s3(region: Option<&str>, endpoint: Option<&str>, sts_endpoint: Option<&str>) -> S3 {
        let mut data = json!({"access_key_id": "a", "secret_access_key": "s", "bucket": "daily"});
        for (name, value) in [("region", region), ("endpoint", endpoint), ("sts_endpoint", sts_endpoint)] {
            if let Some(value) = value {
                data[name] = value.into();
            }
        }
        match CredentialData::from_canonical_json(CredentialType::S3, data.to_string().as_bytes()).unwrap() {
            CredentialData::S3(data) => data,
            _ => panic!("of another type"),
        }
    }

    #[test]
    fn session_endpoint_is_in_partition() {
        for (region, domain) in [
            ("eu-west-1", "amazonaws.com"),
            ("us-gov-west-1", "amazonaws.com"),
            ("cn-north-1", "amazonaws.com.cn"),
            ("us-iso-east-1", "c2s.ic.gov"),
            ("us-isob-east-1", "sc2s.sgov.gov"),
            ("eu-isoe-west-1", "cloud.adc-e.uk"),
            ("us-isof-south-1", "csp.hci.ic.gov"),
            ("eusc-de-east-1", "amazonaws.eu"),
        ] {
            let endpoint = format!("https://s3.{region}.{domain}");
            let session = format!("https://sts.{region}.{domain}");
            for data in [s3(Some(region), None, None), s3(None, Some(&endpoint), None)] {
                assert_eq!(data.location().sts_address(), session);
                assert!(data.location().is_amazon());
            }
        }
    }

    #[test]
    fn signing_region_is_read_from_aws_endpoints() {
        for (endpoint, region) in [
            ("https://s3.cn-north-1.amazonaws.com.cn", "cn-north-1"),
            ("https://s3-eu-west-1.amazonaws.com", "eu-west-1"),
            ("https://s3.dualstack.eu-central-1.amazonaws.com", "eu-central-1"),
            ("https://s3-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
            ("https://bucket.vpce-0a1b.s3.us-east-2.vpce.amazonaws.com", "us-east-2"),
            ("https://s3.amazonaws.com", ASSUMED_REGION),
            ("https://s3.eu-west-1.store.example", ASSUMED_REGION),
        ] {
            assert_eq!(s3(None, Some(endpoint), None).location().signing_region(), region, "{endpoint}");
        }
        let saved = s3(Some("ap-south-1"), Some("https://s3.eu-west-1.amazonaws.com"), None);
        assert_eq!(saved.location().signing_region(), "ap-south-1");
    }

    #[test]
    fn bucket_in_host_is_found_unless_the_host_is_the_storage() {
        let stripped = |endpoint: &str, path_style: bool| {
            let mut data = s3(None, Some(endpoint), None);
            data.path_style_access = Some(path_style);
            data.location().endpoint_without_bucket()
        };
        assert_eq!(stripped("https://daily.store.example", false).as_deref(), Some("https://store.example"));
        assert_eq!(stripped("https://daily.store.example", true), None);
        assert_eq!(stripped("https://store.example/daily", true).as_deref(), Some("https://store.example"));
        assert_eq!(stripped("https://daily.vpce-0a1b.s3.us-east-2.vpce.amazonaws.com", false), None);
    }

    #[test]
    fn other_stores_issue_sessions_themselves() {
        let store = s3(Some("cn-north-1"), Some("https://store.example"), None);
        assert_eq!(store.location().sts_address(), "https://store.example");
        let saved = s3(None, Some("https://s3.eu-west-1.amazonaws.com"), Some("https://sts.example"));
        assert_eq!(saved.location().sts_address(), "https://sts.example");
    }
}
