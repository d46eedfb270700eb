//! Partitions of AWS, and the hosts of their services.

/// Prefixes of AWS Regions outside the commercial partition, with their partition.
///
/// <https://docs.aws.amazon.com/general/latest/gr/rande.html>; the table of botocore's `endpoints.json`.
const PARTITIONS: [(&str, AwsPartition); 7] = [
    ("cn-", AwsPartition { name: "aws-cn", domain: "amazonaws.com.cn" }),
    ("us-gov-", AwsPartition { name: "aws-us-gov", domain: "amazonaws.com" }),
    ("us-iso-", AwsPartition { name: "aws-iso", domain: "c2s.ic.gov" }),
    ("us-isob-", AwsPartition { name: "aws-iso-b", domain: "sc2s.sgov.gov" }),
    ("eu-isoe-", AwsPartition { name: "aws-iso-e", domain: "cloud.adc-e.uk" }),
    ("us-isof-", AwsPartition { name: "aws-iso-f", domain: "csp.hci.ic.gov" }),
    ("eusc-", AwsPartition { name: "aws-eusc", domain: "amazonaws.eu" }),
];
const COMMERCIAL: AwsPartition = AwsPartition { name: "aws", domain: "amazonaws.com" };

/// A partition of AWS, with separate accounts and domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwsPartition {
    /// Name in ARNs.
    pub name: &'static str,
    /// Domain of its services.
    pub domain: &'static str,
}

impl AwsPartition {
    /// Returns the partition of a Region.
    pub fn of(region: &str) -> Self {
        PARTITIONS.iter().find(|(start, _)| region.starts_with(start)).map_or(COMMERCIAL, |(_, partition)| *partition)
    }
}

/// Returns the part of an AWS host before the domain, such as `s3.eu-west-1`. Customers control many of these hosts.
pub(super) fn service_of_amazon(host: &str) -> Option<&str> {
    let mut domains = PARTITIONS.iter().map(|(_, partition)| partition.domain).chain([COMMERCIAL.domain]);
    domains.find_map(|domain| host.strip_suffix(domain)?.strip_suffix('.'))
}
