//! Audience of federation tokens.

use crate::credential::AzureCloud;
use std::fmt;
use url::{Host, Url};

/// Value of the `aud` claim. It follows from the address that receives the token, so a token never authorizes its
/// recipient at another service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FederationAudience(String);

const AWS: &str = "sts.amazonaws.com";
const AWS_CHINA: &str = "sts.amazonaws.com.cn";

impl FederationAudience {
    /// Returns the audience of a security token service at `url`: that of AWS for the exact hosts of its service, and
    /// the origin for any other one. Returns `None` unless it is an `https` URL with a host and without a path, because a path
    /// would send the token to another application of the origin.
    pub fn of_sts(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok().filter(|url| url.scheme() == "https" && url.path() == "/")?;
        let of_aws = match (url.host()?, url.port()) {
            (Host::Domain(host), None) => sts_of_aws(host),
            _ => None,
        };
        Some(Self(of_aws.map_or_else(|| url.origin().ascii_serialization(), str::to_owned)))
    }

    /// Returns the audience of Entra ID in `cloud`. Returns `None` for a closed cloud.
    pub fn of_entra(cloud: AzureCloud) -> Option<Self> {
        let audience = match cloud {
            AzureCloud::Public => "api://AzureADTokenExchange",
            AzureCloud::China => "api://AzureADTokenExchangeChina",
            AzureCloud::UsGovernment => "api://AzureADTokenExchangeUSGov",
            AzureCloud::Germany => return None,
        };
        Some(Self(audience.to_owned()))
    }

    /// Returns the audience of Google's token exchange for the workload identity provider with the resource name
    /// `provider`, which starts with `//iam.googleapis.com/`. Google accepts this audience by default.
    pub fn of_google(provider: &str) -> Self {
        Self(format!("https:{provider}"))
    }

    /// Returns whether AWS issues the session.
    pub fn is_aws(&self) -> bool {
        matches!(&*self.0, AWS | AWS_CHINA)
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FederationAudience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the audience if `host` is one of the hosts of AWS STS. Compares whole hosts, because customers control many
/// other hosts below the same domains, such as load balancers and buckets.
fn sts_of_aws(host: &str) -> Option<&'static str> {
    [("amazonaws.com", AWS), ("amazonaws.com.cn", AWS_CHINA)].into_iter().find_map(|(domain, audience)| {
        let labels: Vec<&str> = host.strip_suffix(domain)?.strip_suffix('.')?.split('.').collect();
        let is_sts = match *labels.as_slice() {
            ["sts"] => true,
            ["sts" | "sts-fips", region] => is_aws_region(region),
            [endpoint, "sts", region, "vpce"] => endpoint.starts_with("vpce-") && is_aws_region(region),
            _ => false,
        };
        is_sts.then_some(audience)
    })
}

/// Returns whether a host label has the form of an AWS Region, such as `eu-central-1`. A label that starts with `s3`
/// does not: `sts.s3.amazonaws.com` and `sts.s3-eu-west-1.amazonaws.com` are addresses of a bucket with the name `sts`.
pub(crate) fn is_aws_region(label: &str) -> bool {
    let parts: Vec<&str> = label.split('-').collect();
    match *parts.as_slice() {
        [ref words @ .., number] if words.len() >= 2 => {
            let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            words.iter().all(is_word) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    }
}
