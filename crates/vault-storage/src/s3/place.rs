//! Address of a bucket.

use url::Url;
use vault_core::credential::{Addressing, AwsPartition, S3Location};

/// Returns the bucket's address with a trailing slash, or `None` if the saved endpoint is invalid.
pub(super) fn address_of(location: &S3Location<'_>, bucket: &str, style: Addressing) -> Option<String> {
    let region = location.signing_region();
    let (scheme, authority, path) = match location.endpoint {
        None => ("https".to_owned(), format!("s3.{region}.{}", AwsPartition::of(&region).domain), String::new()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vault_core::credential::{CredentialData, CredentialType};

    #[test]
    fn object_arns_are_in_partition() {
        for (region, domain) in
            [("eu-west-1", "amazonaws.com"), ("cn-north-1", "amazonaws.com.cn"), ("us-iso-east-1", "c2s.ic.gov")]
        {
            let endpoint = format!("https://s3.{region}.{domain}");
            for place in [json!({"region": region}), json!({"endpoint": endpoint})] {
                let mut data = json!({"access_key_id": "a", "secret_access_key": "s", "bucket": "daily"});
                data.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
                let data =
                    CredentialData::from_canonical_json(CredentialType::S3, data.to_string().as_bytes()).unwrap();
                let CredentialData::S3(data) = data else { panic!("of another type") };
                let address = address_of(&data.location(), "daily", Addressing::Path);
                assert_eq!(address, Some(format!("{endpoint}/daily/")));
            }
        }
    }
}
