//! Address and region of a bucket.

use std::borrow::Cow;
use url::Url;
use vault_core::credential::{Addressing, S3};

/// Region that tools use by default.
const ASSUMED_REGION: &str = "us-east-1";

/// Prefixes of AWS regions outside the commercial partition, with partition and domain.
///
/// <https://docs.aws.amazon.com/general/latest/gr/rande.html>; the table of botocore's `endpoints.json`.
const PARTITIONS: [(&str, Partition); 7] = [
    ("cn-", Partition { name: "aws-cn", domain: "amazonaws.com.cn" }),
    ("us-gov-", Partition { name: "aws-us-gov", domain: "amazonaws.com" }),
    ("us-iso-", Partition { name: "aws-iso", domain: "c2s.ic.gov" }),
    ("us-isob-", Partition { name: "aws-iso-b", domain: "sc2s.sgov.gov" }),
    ("eu-isoe-", Partition { name: "aws-iso-e", domain: "cloud.adc-e.uk" }),
    ("us-isof-", Partition { name: "aws-iso-f", domain: "csp.hci.ic.gov" }),
    ("eusc-", Partition { name: "aws-eusc", domain: "amazonaws.eu" }),
];
const COMMERCIAL: Partition = Partition { name: "aws", domain: "amazonaws.com" };

/// A partition of AWS, with separate accounts and domains.
#[derive(Clone, Copy)]
pub(super) struct Partition {
    /// Name in ARNs.
    pub(super) name: &'static str,
    pub(super) domain: &'static str,
}

impl Partition {
    pub(super) fn of(region: &str) -> Self {
        PARTITIONS.iter().find(|(start, _)| region.starts_with(start)).map_or(COMMERCIAL, |(_, partition)| *partition)
    }
}

/// Returns the region for signing: the saved one, that of an AWS endpoint, or the default.
pub(super) fn region_of(data: &S3) -> Cow<'_, str> {
    match &data.region {
        Some(region) => region.into(),
        None => region_of_endpoint(data).map_or(ASSUMED_REGION.into(), Cow::from),
    }
}

/// Returns the region of an endpoint such as `https://s3.eu-west-1.amazonaws.com`: the label that ends with a digit.
fn region_of_endpoint(data: &S3) -> Option<String> {
    let url = Url::parse(data.endpoint.as_deref()?).ok()?;
    let service = service_of_amazon(url.host_str()?)?;
    let is_region = |label: &&str| label.contains('-') && label.ends_with(|c: char| c.is_ascii_digit());
    let labels = service.split('.').map(|label| label.strip_prefix("s3-").unwrap_or(label));
    labels.rev().find(is_region).map(str::to_owned)
}

/// Returns the part of an AWS host before the domain, such as `s3.eu-west-1`.
fn service_of_amazon(host: &str) -> Option<&str> {
    let mut domains = PARTITIONS.iter().map(|(_, partition)| partition.domain).chain([COMMERCIAL.domain]);
    domains.find_map(|domain| host.strip_suffix(domain)?.strip_suffix('.'))
}

/// Returns whether the storage is Amazon S3.
pub(super) fn is_amazon(data: &S3) -> bool {
    let Some(endpoint) = data.endpoint.as_deref() else { return true };
    let url = Url::parse(endpoint).ok();
    url.as_ref().and_then(Url::host_str).is_some_and(|host| service_of_amazon(host).is_some())
}

/// Returns the bucket's address with a trailing slash, or `None` if the saved endpoint is invalid.
pub(super) fn address_of(data: &S3, bucket: &str, style: Addressing) -> Option<String> {
    let region = region_of(data);
    let (scheme, authority, path) = match &data.endpoint {
        None => ("https".to_owned(), format!("s3.{region}.{}", Partition::of(&region).domain), String::new()),
        Some(endpoint) => {
            let url = Url::parse(endpoint).ok()?;
            let host = url.host_str()?;
            let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            (url.scheme().to_owned(), authority, url.path().trim_end_matches('/').to_owned())
        }
    };
    let bucket = crate::text::encode_name(bucket)?;
    Some(match style {
        Addressing::Host => format!("{scheme}://{bucket}.{authority}{path}/"),
        Addressing::Path => format!("{scheme}://{authority}{path}/{bucket}/"),
    })
}

/// Returns the address of the security token service: the saved one, that of AWS in the region, or the storage itself.
pub(super) fn session_address(data: &S3) -> String {
    match data.sts_endpoint.as_ref().or(data.endpoint.as_ref()) {
        Some(endpoint) if data.sts_endpoint.is_some() || !is_amazon(data) => endpoint.clone(),
        _ => {
            let region = region_of(data);
            format!("https://sts.{region}.{}", Partition::of(&region).domain)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vault_core::credential::{CredentialData, CredentialType};

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
    fn sessions_and_objects_stay_in_the_partition() {
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
                assert_eq!(session_address(&data), session);
                assert_eq!(address_of(&data, "daily", Addressing::Path), Some(format!("{endpoint}/daily/")));
                assert!(is_amazon(&data));
            }
        }
    }

    #[test]
    fn the_region_is_read_from_an_endpoint_of_aws() {
        for (endpoint, region) in [
            ("https://s3.cn-north-1.amazonaws.com.cn", "cn-north-1"),
            ("https://s3-eu-west-1.amazonaws.com", "eu-west-1"),
            ("https://s3.dualstack.eu-central-1.amazonaws.com", "eu-central-1"),
            ("https://s3-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
            ("https://bucket.vpce-0a1b.s3.us-east-2.vpce.amazonaws.com", "us-east-2"),
            ("https://s3.amazonaws.com", ASSUMED_REGION),
            ("https://s3.eu-west-1.store.example", ASSUMED_REGION),
        ] {
            assert_eq!(region_of(&s3(None, Some(endpoint), None)), region, "{endpoint}");
        }
        assert_eq!(region_of(&s3(Some("ap-south-1"), Some("https://s3.eu-west-1.amazonaws.com"), None)), "ap-south-1");
    }

    #[test]
    fn other_stores_issue_sessions_themselves() {
        let store = s3(Some("cn-north-1"), Some("https://store.example"), None);
        assert_eq!(session_address(&store), "https://store.example");
        let stated = s3(None, Some("https://s3.eu-west-1.amazonaws.com"), Some("https://sts.example"));
        assert_eq!(session_address(&stated), "https://sts.example");
    }
}
