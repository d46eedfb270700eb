//! Where a bucket is.

use std::net::IpAddr;
use url::{Host, Url};
use vault_core::credential::S3;

/// The region that tools assume where none is given.
const ASSUMED_REGION: &str = "us-east-1";

/// Where in an address the bucket stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `https://bucket.store/`
    Host,
    /// `https://store/bucket/`
    Path,
}

impl Style {
    /// As it is saved, or as tools choose it: in the host, unless the bucket's name or the store's address rule
    /// that out.
    pub(super) fn of(data: &S3) -> Self {
        let asked = data.path_style_access == Some(true);
        let is_address = data
            .endpoint
            .as_deref()
            .and_then(|endpoint| Url::parse(endpoint).ok())
            .is_some_and(|url| !matches!(url.host(), Some(Host::Domain(name)) if name.parse::<IpAddr>().is_err()));
        if asked || is_address || !is_host_label(&data.bucket) { Self::Path } else { Self::Host }
    }
}

/// Whether the bucket can be a host's label: a dot would be one too many for the store's certificate.
fn is_host_label(bucket: &str) -> bool {
    (3..=63).contains(&bucket.len())
        && bucket.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !bucket.starts_with('-')
        && !bucket.ends_with('-')
}

/// The region to sign for.
pub(super) fn region_of(data: &S3) -> &str {
    data.region.as_deref().unwrap_or(ASSUMED_REGION)
}

/// Amazon's domain in the region's part of the world.
fn amazon(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

/// Whether the store is Amazon's own.
pub(super) fn is_amazon(data: &S3) -> bool {
    let host = data.endpoint.as_deref().and_then(|endpoint| Url::parse(endpoint).ok());
    let host = host.as_ref().and_then(Url::host_str);
    host.map_or(data.endpoint.is_none(), |host| host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

/// The bucket's address, with a last slash. `None` where the saved one cannot be used.
pub(super) fn address_of(data: &S3, style: Style) -> Option<String> {
    let region = region_of(data);
    let (scheme, authority, path) = match &data.endpoint {
        None => ("https".to_owned(), format!("s3.{region}.{}", amazon(region)), String::new()),
        Some(endpoint) => {
            let url = Url::parse(endpoint).ok()?;
            let host = url.host_str()?;
            let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            (url.scheme().to_owned(), authority, url.path().trim_end_matches('/').to_owned())
        }
    };
    let bucket = crate::text::encode_name(&data.bucket)?;
    Some(match style {
        Style::Host => format!("{scheme}://{bucket}.{authority}{path}/"),
        Style::Path => format!("{scheme}://{authority}{path}/{bucket}/"),
    })
}

/// Where keys of a session are asked for: where the credential says; else Amazon's in the region, and other stores' where
/// the store is.
pub(super) fn session_address(data: &S3) -> String {
    match data.sts_endpoint.as_ref().or(data.endpoint.as_ref()) {
        Some(endpoint) if data.sts_endpoint.is_some() || !is_amazon(data) => endpoint.clone(),
        _ => {
            let region = region_of(data);
            format!("https://sts.{region}.{}", amazon(region))
        }
    }
}
