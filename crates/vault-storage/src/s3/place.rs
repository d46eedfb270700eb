//! Where a bucket is.

use url::Url;
use vault_core::credential::{Addressing, S3};

/// The region that tools assume where none is given.
const ASSUMED_REGION: &str = "us-east-1";

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
pub(super) fn address_of(data: &S3, style: Addressing) -> Option<String> {
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
        Addressing::Host => format!("{scheme}://{bucket}.{authority}{path}/"),
        Addressing::Path => format!("{scheme}://{authority}{path}/{bucket}/"),
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
